package safetensors

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestPatchChangesOnlyWhatIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	tensors := []Tensor{{"a", "U8", []uint64{3}, 3}, {"b", "U8", []uint64{5}, 5}}
	save(t, path, tensors, [][]byte{[]byte("aaa"), []byte("bbbbb")}, nil)
	p, err := OpenPatchOn(OS{}, path)
	if err != nil {
		t.Fatal(err)
	}
	i, _ := p.Find("b")
	if err := p.WriteAt(i, []byte("xy"), 2); err != nil {
		t.Fatal(err)
	}
	for _, off := range []int64{-1, 4, 5, 1 << 40} {
		if err := p.WriteAt(i, []byte("zz"), off); err == nil {
			t.Errorf("wrote past the tensor, at %d", off)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil || !bytes.HasSuffix(b, []byte("aaabbxyb")) {
		t.Errorf("holds %q, %v", b, err)
	}
	if err := os.Symlink(path, path+".link"); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenPatchOn(OS{}, path+".link"); err == nil {
		t.Error("followed a symlink")
	}
}
