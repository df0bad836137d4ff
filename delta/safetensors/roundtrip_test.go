package safetensors

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// anyTensor draws a tensor that may be a scalar, empty, of odd size or of a dtype that nobody knows.
func anyTensor(t *rapid.T) Tensor {
	names := rapid.OneOf(rapid.String(), rapid.StringMatching(`layers\.[0-9]\.w`), rapid.Just("\"\\\b\u2028\x7f</script>"))
	tensor := Tensor{Name: names.Draw(t, "name")}
	tensor.Shape = rapid.SliceOfN(rapid.Uint64Range(0, 5), 0, 4).Draw(t, "shape")
	if rapid.Bool().Draw(t, "known") {
		tensor.DType = dtypes[rapid.IntRange(0, len(dtypes)-1).Draw(t, "dtype")].name
		size, _, err := byteSize(tensor.DType, tensor.Shape)
		if err != nil {
			t.Skip("ends inside a byte")
		}
		tensor.Size = int64(size)
		return tensor
	}
	tensor.DType = rapid.String().Filter(func(s string) bool { _, known := BitWidth(s); return !known }).Draw(t, "dtype")
	tensor.Size = rapid.Int64Range(0, 40).Draw(t, "size")
	return tensor
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	rapid.Check(t, func(rt *rapid.T) {
		tensors := rapid.SliceOfNDistinct(rapid.Custom(anyTensor), 0, 12, func(t Tensor) string { return t.Name }).Draw(rt, "tensors")
		metadata := rapid.MapOf(rapid.String(), rapid.String()).Draw(rt, "metadata")
		data := map[string][]byte{}
		list := make([][]byte, len(tensors))
		for i, tensor := range tensors {
			list[i] = rapid.SliceOfN(rapid.Byte(), int(tensor.Size), int(tensor.Size)).Draw(rt, "data")
			data[tensor.Name] = list[i]
		}
		save(rt, path, tensors, list, metadata)
		c, err := Open(path)
		if err != nil {
			rt.Fatal(err)
		}
		defer c.Close()
		if len(c.Tensors()) != len(tensors) || !maps.Equal(c.Metadata(), metadata) {
			rt.Fatalf("read %d tensors, metadata %q", len(c.Tensors()), c.Metadata())
		}
		for i, tensor := range tensors {
			at, found := c.Find(tensor.Name)
			if !found || !sameTensor(c.Tensors()[at], tensor) {
				rt.Fatalf("tensor %d: wrote %+v, found %v", i, tensor, found)
			}
			if got := contents(rt, c, at); !bytes.Equal(got, data[tensor.Name]) {
				rt.Fatalf("tensor %d: wrote %x, read %x", i, data[tensor.Name], got)
			}
		}
	})
}

// sameTensor compares descriptions; no shape and an empty one are the same.
func sameTensor(a, b Tensor) bool {
	return a.Name == b.Name && a.DType == b.DType && a.Size == b.Size &&
		len(a.Shape) == len(b.Shape) && (len(a.Shape) == 0 || reflect.DeepEqual(a.Shape, b.Shape))
}

// FuzzOpen checks that whatever opens can be written again, that the copy reads the same,
// and that a copy of the copy has the same bytes.
func FuzzOpen(f *testing.F) {
	f.Add(pack("{}", ""))
	f.Add(shard("a", "b"))
	f.Add(pack(`{"__metadata__":{"format":"pt"},"t":{"dtype":"F4","shape":[2,1],"data_offsets":[0,1]}}  `, "x"))
	f.Add(pack(`{"\ud83d\ude00":{"dtype":"Q","shape":[],"data_offsets":[0,3]},"e":{"dtype":"I64","shape":[0],"data_offsets":[0,0]}}`, "xyz"))
	f.Add(pack(`{"t":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]},"t":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}`, "xy"))
	f.Fuzz(func(t *testing.T, file []byte) {
		dir := t.TempDir()
		first, err := Open(put(t, dir, "first", file))
		if err != nil {
			return
		}
		defer first.Close()
		second := rewrite(t, first, filepath.Join(dir, "second"))
		if !reflect.DeepEqual(first.Tensors(), second.Tensors()) || !reflect.DeepEqual(first.Metadata(), second.Metadata()) {
			t.Fatalf("copy differs: %+v and %+v", first.Tensors(), second.Tensors())
		}
		for i := range first.Tensors() {
			if !bytes.Equal(contents(t, first, i), contents(t, second, i)) {
				t.Fatalf("tensor %d of the copy differs", i)
			}
		}
		rewrite(t, second, filepath.Join(dir, "third"))
		a, errA := os.ReadFile(filepath.Join(dir, "second"))
		b, errB := os.ReadFile(filepath.Join(dir, "third"))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Fatalf("copies differ: %q and %q", a, b)
		}
	})
}

// FuzzIndex checks that an index is read or refused, and never leads out of its directory.
func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"metadata":{"total_size":4},"weight_map":{"a":"1","b":"2"}}`))
	f.Add([]byte(`{"weight_map":{"a":"../1"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseIndex(text)
		if err != nil {
			return
		}
		for tensor, shard := range m.shardOf {
			if !filepath.IsLocal(shard) || filepath.Base(shard) != shard {
				t.Fatalf("tensor %q in %q", tensor, shard)
			}
		}
	})
}

// rewrite copies a checkpoint through the writer.
func rewrite(t *testing.T, c *Checkpoint, path string) *Checkpoint {
	data := make([][]byte, len(c.Tensors()))
	for i := range data {
		data[i] = contents(t, c, i)
	}
	save(t, path, c.Tensors(), data, c.Metadata())
	return mustOpen(t, path)
}
