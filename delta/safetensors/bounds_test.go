package safetensors

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// entries is n members of a JSON object, without its braces.
func entries(n int, value string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", fmt.Sprintf("%x", i), value)
	}
	return b.String()
}

func TestBoundsOfAHeader(t *testing.T) {
	dir := t.TempDir()
	long := func(n int) string { return `"x":"` + strings.Repeat("y", n-1) + `"` }
	for _, c := range []struct{ name, header, want string }{
		{"metadata", `{"__metadata__":{` + entries(maxMetadata, `""`) + `}}`, ""},
		{"metadata, one more", `{"__metadata__":{` + entries(maxMetadata+1, `""`) + `}}`, "more than 65536 entries"},
		{"long metadata", `{"__metadata__":{` + long(maxMetadataBytes) + `}}`, ""},
		{"long metadata, one byte more", `{"__metadata__":{` + long(maxMetadataBytes+1) + `}}`, "more than 16777216 bytes of metadata"},
		{"long key", `{"__metadata__":{"` + strings.Repeat("y", maxMetadataBytes+1) + `":""}}`, "more than 16777216 bytes of metadata"},
	} {
		opened, err := Open(put(t, dir, "x", pack(c.header, "")))
		if c.want != "" {
			wantError(t, err, filepath.Join(dir, "x"), c.want)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		opened.Close()
	}
}

// TestBoundOfTensors begins at the bound, since a header up to there takes long to read.
func TestBoundOfTensors(t *testing.T) {
	const tensor = `{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`
	for _, c := range []struct {
		had  int
		fine bool
	}{{maxTensors - 1, true}, {maxTensors, false}} {
		w, err := newWalker([]byte(tensor))
		if err != nil {
			t.Fatal(err)
		}
		h := &header{entries: make([]entry, c.had)}
		if err := h.parseEntry(w, "t"); (err == nil) != c.fine || !c.fine && !strings.Contains(err.Error(), "more than 1048576 tensors") {
			t.Errorf("after %d: got %v", c.had, err)
		}
	}
}

// TestBoundsOfShards gives every shard as much metadata as is fine for one.
func TestBoundsOfShards(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"1", "2"} {
		put(t, dir, name, pack(fmt.Sprintf(`{"__metadata__":{"k%d":%q},"t%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`,
			i, strings.Repeat("y", maxMetadataBytes/2+1), i), ""))
	}
	put(t, dir, indexName, []byte(`{"weight_map":{"t0":"1","t1":"2"}}`))
	_, err := Open(dir)
	wantError(t, err, filepath.Join(dir, "2"), "bytes of metadata")

	put(t, dir, indexName, []byte(`{"weight_map":{`+entries(maxTensors+1, `"1"`)+`}}`))
	_, err = Open(dir)
	wantError(t, err, indexName, "more than 1048576 tensors")
}

// TestWriterKeepsTheBounds writes nothing that the reader would refuse.
func TestWriterKeepsTheBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	many := map[string]string{}
	for i := range maxMetadata + 1 {
		many[fmt.Sprint(i)] = ""
	}
	_, err := Create(path, nil, many)
	wantError(t, err, path, "more than 65536 entries")
	_, err = Create(path, nil, map[string]string{"x": strings.Repeat("y", maxMetadataBytes)})
	wantError(t, err, path, "bytes of metadata")
	_, err = Create(path, make([]Tensor, maxTensors+1), nil)
	wantError(t, err, path, "at most 1048576")
}

// TestPaddingTakesNoMemory opens headers that are mostly or wholly white space, around the size of one step.
func TestPaddingTakesNoMemory(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []int{0, 1, padStep - 3, padStep - 2, padStep - 1, padStep, 2*padStep - 2, 3 * padStep} {
		pad := strings.Repeat("\n", n)
		c := mustOpen(t, put(t, dir, "x", pack(`{"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`+pad, "\n")))
		if got := string(contents(t, c, 0)); got != "\n" {
			t.Errorf("%d bytes of padding: tensor holds %q", n, got)
		}
		_, err := Open(put(t, dir, "y", pack("  "+pad, "")))
		wantError(t, err, "does not begin with '{'")
		_, err = Open(put(t, dir, "y", pack("{}"+pad+"x", "")))
		wantError(t, err, "more follows")
	}
	path := put(t, dir, "x", pack("{}"+strings.Repeat(" ", 50<<20), ""))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	mustOpen(t, path)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("50 MiB of padding took %d bytes of memory", got)
	}
}
