package safetensors

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A directory in which two saves met is opened only where it is clear which one is meant.
func TestTwoSavesInOneDirectory(t *testing.T) {
	const (
		first, second = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
		both          = `{"weight_map":{"a":"` + first + `","b":"` + second + `"}}`
	)
	type file struct{ name, text string }
	a, b, c := file{first, string(shard("a"))}, file{second, string(shard("b"))}, file{singleName, string(shard("c"))}
	index := file{indexName, both}
	for name, test := range map[string]struct {
		files []file // in the order of their times
		want  string // the first tensor; empty for an error
	}{
		"shards and index":                   {[]file{a, b, index}, "a"},
		"index before its shards":            {[]file{index, a, b}, "a"},
		"single left by an earlier save":     {[]file{c, a, b, index}, "a"},
		"single after shards and index":      {[]file{a, b, index, c}, ""},
		"single after the index":             {[]file{index, c, a, b}, ""},
		"single that the index names":        {[]file{{indexName, `{"weight_map":{"c":"` + singleName + `"}}`}, c}, "c"},
		"other weights after the index":      {[]file{a, b, index, {"consolidated.safetensors", "x"}}, "a"},
		"shards, and the index not yet":      {[]file{a, b}, ""},
		"one shard, and the index not yet":   {[]file{a}, ""},
		"the last shard alone":               {[]file{b}, ""},
		"one shard of another name":          {[]file{{"diffusion-00001-of-00003.safetensors", a.text}}, ""},
		"one shard of one":                   {[]file{{"model-00001-of-00001.safetensors", a.text}}, "a"},
		"one file of another name":           {[]file{{"policy.safetensors", a.text}}, "a"},
		"a number that no file name can say": {[]file{{"model-1-of-99999999999999999999.safetensors", a.text}}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for i, f := range test.files {
				path := put(t, dir, f.name, []byte(f.text))
				at := time.UnixMilli(1e12 + int64(i))
				if err := os.Chtimes(path, at, at); err != nil {
					t.Fatal(err)
				}
			}
			if test.want == "" {
				if c, err := Open(dir); err == nil {
					t.Errorf("opened, with tensors %v", c.Tensors())
				}
				return
			}
			if got := mustOpen(t, dir).Tensors()[0].Name; got != test.want {
				t.Errorf("tensor %s, want %s", got, test.want)
			}
		})
	}
	dir := t.TempDir()
	if c := mustOpen(t, put(t, dir, first, shard("a"))); len(c.Tensors()) != 1 { // named: it is meant
		t.Errorf("tensors %v", c.Tensors())
	}
	put(t, dir, second, shard("b"))
	path := put(t, dir, indexName, []byte(both))
	at := time.Now().Add(time.Hour)
	if err := os.Chtimes(put(t, dir, singleName, shard("c")), at, at); err != nil {
		t.Fatal(err)
	}
	if c := mustOpen(t, path); len(c.Tensors()) != 2 {
		t.Errorf("%s: tensors %v", filepath.Base(path), c.Tensors())
	}
}
