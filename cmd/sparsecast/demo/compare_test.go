package demo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sparsecast/sparsecast/delta/safetensors"
)

// save writes a checkpoint with one tensor.
func save(t *testing.T, name, dtype string, shape []uint64, data []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "x.safetensors")
	w, err := safetensors.Create(path, []safetensors.Tensor{{Name: name, DType: dtype, Shape: shape, Size: int64(len(data))}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteAt(0, data, 0); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCompare shows the judge of the demo what differs in one thing at a time.
func TestCompare(t *testing.T) {
	data := make([]byte, 3<<20) // several reads
	flipped := append([]byte(nil), data...)
	flipped[2<<20+5] ^= 1
	n := uint64(len(data) / 2)
	path := save(t, "w", "BF16", []uint64{n}, data)
	for _, c := range []struct {
		what  string
		other string
		want  bool
	}{
		{"an equal one", save(t, "w", "BF16", []uint64{n}, data), true},
		{"another bit", save(t, "w", "BF16", []uint64{n}, flipped), false},
		{"another name", save(t, "v", "BF16", []uint64{n}, data), false},
		{"another dtype", save(t, "w", "F16", []uint64{n}, data), false},
		{"another shape", save(t, "w", "BF16", []uint64{2, n / 2}, data), false},
	} {
		for _, places := range [][]string{{c.other}, {path, c.other}, {c.other, path}} {
			if same, err := compare(path, places); err != nil || same != c.want {
				t.Errorf("%s: same %v, %v", c.what, same, err)
			}
		}
	}
}

func TestCompareFailsWhereItCannotRead(t *testing.T) {
	path := save(t, "w", "U8", []uint64{9}, make([]byte, 9))
	cut := save(t, "w", "U8", []uint64{9}, make([]byte, 9))
	if err := os.Truncate(cut, 20); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{cut, filepath.Join(t.TempDir(), "absent")} {
		if same, err := compare(path, []string{other}); err == nil || same {
			t.Errorf("%s: same %v, %v", other, same, err)
		}
	}
}
