package safetensors

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// shard is a file with one-byte tensors, each holding the first byte of its name.
func shard(names ...string) []byte {
	var header, data strings.Builder
	for i, n := range names {
		if i > 0 {
			header.WriteByte(',')
		}
		fmt.Fprintf(&header, `%q:{"dtype":"U8","shape":[1],"data_offsets":[%d,%d]}`, n, i, i+1)
		data.WriteByte(n[0])
	}
	return pack("{"+header.String()+"}", data.String())
}

func TestShards(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "model-00001-of-00002.safetensors", shard("d", "a"))
	put(t, dir, "model-00002-of-00002.safetensors", shard("c", "b"))
	put(t, dir, "model-00001-of-00001.safetensors", []byte("left by an earlier save"))
	put(t, dir, "model.safetensors", []byte("this one too"))
	index := put(t, dir, indexName, []byte(`{"metadata":{"total_size":4,"x":[{"y":null}]},"weight_map":{
		"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors",
		"c":"model-00002-of-00002.safetensors","d":"model-00001-of-00002.safetensors"}}`+"\n"))
	for _, path := range []string{dir, index} {
		c := mustOpen(t, path)
		if got := fmt.Sprint(c.Tensors()); got != "[{a U8 [1] 1} {b U8 [1] 1} {c U8 [1] 1} {d U8 [1] 1}]" {
			t.Errorf("%s: tensors %s", path, got)
		}
		for i, tensor := range c.Tensors() {
			if got := string(contents(t, c, i)); got != tensor.Name {
				t.Errorf("%s: tensor %s holds %q", path, tensor.Name, got)
			}
			if at, found := c.Find(tensor.Name); at != i || !found {
				t.Errorf("%s: tensor %s found at %d, %v", path, tensor.Name, at, found)
			}
		}
		if _, found := c.Find("aa"); found {
			t.Errorf("%s: found what is not there", path)
		}
		if files := c.Files(); len(files) != 2 || filepath.Base(files[0]) != "model-00001-of-00002.safetensors" {
			t.Errorf("%s: files %v", path, files)
		}
	}
}

func TestShardMetadata(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "1", pack(`{"__metadata__":{"format":"pt","n":"1"},"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}`, "a"))
	put(t, dir, "2", pack(`{"__metadata__":{"m":"2","n":"2"},"b":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}`, "b"))
	put(t, dir, indexName, []byte(`{"weight_map":{"a":"1","b":"2"}}`))
	if got := fmt.Sprint(mustOpen(t, dir).Metadata()); got != "map[format:pt m:2 n:1]" {
		t.Errorf("metadata %s", got)
	}
}

func TestIndexRefuses(t *testing.T) {
	cases := []struct{ name, index, want string }{
		{"half-written", `{"weight_map":{"a":"1"`, "half-written"},
		{"empty", ``, "half-written"},
		{"no map", `{"metadata":{}}`, "no weight_map"},
		{"empty map", `{"weight_map":{}}`, "no weight_map"},
		{"map twice", `{"weight_map":{"a":"1"},"weight_map":{"a":"1"}}`, "duplicate"},
		{"tensor twice", `{"weight_map":{"a":"1","b":"2","a":"1"}}`, `duplicate tensor "a"`},
		{"trailing garbage", `{"weight_map":{"a":"1","b":"2"}}}`, "more follows"},
		{"not UTF-8", "{\"weight_map\":{\"\xff\":\"1\"}}", "UTF-8"},
		{"shard a number", `{"weight_map":{"a":1}}`, `tensor "a": want a string`},
		{"map null", `{"weight_map":null}`, "found null"},
		{"deep", `{"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, "nested deeper"},
		{"up", `{"weight_map":{"a":".."}}`, "plain file name"},
		{"here", `{"weight_map":{"a":"."}}`, "plain file name"},
		{"no name", `{"weight_map":{"a":""}}`, "plain file name"},
		{"other directory", `{"weight_map":{"a":"../1"}}`, "plain file name"},
		{"root", `{"weight_map":{"a":"/1"}}`, "plain file name"},
		{"subdirectory", `{"weight_map":{"a":"x/1"}}`, "plain file name"},
		{"backslash", `{"weight_map":{"a":"x\\1"}}`, "plain file name"},
		{"zero byte", `{"weight_map":{"a":"x\u0000"}}`, "plain file name"},
		{"long name", `{"weight_map":{"a":"` + strings.Repeat("x", 300) + `"}}`, "plain file name"},
		{"missing shard", `{"weight_map":{"a":"1","b":"2","c":"3"}}`, "missing (half-written"},
		{"tensor not in its shard", `{"weight_map":{"a":"1","b":"2","c":"2"}}`, `tensor "c" is not in its shard "2"`},
		{"tensor not in the index", `{"weight_map":{"a":"1","c":"2"}}`, `tensor "b" is not in the index`},
		{"tensor elsewhere", `{"weight_map":{"a":"2","b":"1"}}`, `1: tensor "a": the index places it in "2"`},
		{"tensor in two shards", `{"weight_map":{"a":"1","b":"2","b2":"both"}}`, `both: tensor "b"`},
		{"shard a directory", `{"weight_map":{"a":"dir"}}`, "not a regular file"},
		{"shard a pipe", `{"weight_map":{"a":"pipe"}}`, "not a regular file"},
		{"shard damaged", `{"weight_map":{"a":"damaged"}}`, "damaged: header"},
	}
	dir := t.TempDir()
	put(t, dir, "1", shard("a"))
	put(t, dir, "2", shard("b"))
	put(t, dir, "both", shard("b", "b2"))
	put(t, dir, "damaged", pack("{}x", ""))
	if err := os.Mkdir(filepath.Join(dir, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			put(t, dir, indexName, []byte(c.index))
			_, err := Open(dir)
			wantError(t, err, dir, c.want)
		})
	}
}

func TestTooManyShards(t *testing.T) {
	var index strings.Builder
	for i := range maxShards + 1 {
		fmt.Fprintf(&index, `,"%d":"%d"`, i, i)
	}
	dir := t.TempDir()
	put(t, dir, indexName, []byte(`{"weight_map":{`+index.String()[1:]+`}}`))
	_, err := Open(dir)
	wantError(t, err, "more than 4096 shards")
}

func TestHugeIndex(t *testing.T) {
	dir := t.TempDir()
	if err := os.Truncate(put(t, dir, indexName, nil), maxIndex+1); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir)
	wantError(t, err, "index of 100000001 bytes")
}

func TestDirectoryWithoutIndex(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(dir)
	wantError(t, err, dir, "no *.safetensors file", "half-written")

	put(t, dir, ".hidden.safetensors", nil)
	put(t, dir, "a.safetensors.partial", nil)
	put(t, dir, "a.safetensors", shard("a"))
	if got := mustOpen(t, dir).Files(); len(got) != 1 || filepath.Base(got[0]) != "a.safetensors" {
		t.Errorf("files %v", got)
	}
	put(t, dir, "b.safetensors", shard("b"))
	_, err = Open(dir)
	wantError(t, err, dir, "several", indexName)

	put(t, dir, "model.safetensors", shard("m"))
	if got := mustOpen(t, dir).Tensors()[0].Name; got != "m" {
		t.Errorf("opened the file with tensor %q", got)
	}
}

func TestCacheSnapshot(t *testing.T) {
	dir := t.TempDir()
	snapshot := filepath.Join(dir, "snapshots", "rev")
	for _, d := range []string{snapshot, filepath.Join(dir, "blobs")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, dir, "blobs/1f", shard("a"))
	put(t, dir, "blobs/2f", []byte(`{"weight_map":{"a":"model-1.safetensors"}}`))
	for name, blob := range map[string]string{"model-1.safetensors": "1f", indexName: "2f"} {
		if err := os.Symlink("../../blobs/"+blob, filepath.Join(snapshot, name)); err != nil {
			t.Fatal(err)
		}
	}
	c := mustOpen(t, snapshot)
	want, err := filepath.EvalSymlinks(filepath.Join(dir, "blobs", "1f"))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Files(); len(got) != 1 || got[0] != want {
		t.Errorf("files %v, want %s", got, want)
	}
	if got := string(contents(t, c, 0)); got != "a" {
		t.Errorf("tensor a holds %q", got)
	}
	if err := c.Changed(); err != nil {
		t.Error(err)
	}
}

func TestNotARegularFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, os.DevNull} {
		_, err := Open(path)
		wantError(t, err, path, "not a regular file")
	}
	_, err := Open(filepath.Join(t.TempDir(), "none"))
	wantError(t, err, "no such file")
}
