package sim

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/sparsecast/sparsecast/delta"
)

// The oracle's own reader and the product's agree about every shape of every form, and every change is one.
func TestWeights(t *testing.T) {
	for _, f := range []form{{}, {layers: true}, {states: true}, {layers: true, states: true, large: true}} {
		rng := rand.New(rand.NewPCG(1, 2))
		for shape := range shapes {
			w := newWeights(rng, f, shape)
			if root := rootOnDisk(t, w); root != w.root() {
				t.Errorf("%s, shape %d: root %s of the files, %s of the weights", f, shape, root, w.root())
			}
			for _, change := range []change{sparse, nothing, dense, reshape} {
				next := w.next(rng, change)
				same := next.sum() == w.sum()
				if same != (change == nothing) || same != (next.root() == w.root()) {
					t.Errorf("%s, shape %d: after changing %s: equal sums %t", f, shape, change, same)
				}
			}
		}
	}
}

// rootOnDisk writes the files of w and has the product read them.
func rootOnDisk(t *testing.T, w *weights) delta.Root {
	t.Helper()
	parts := make(map[string]delta.State)
	for state, file := range w.files() {
		path := filepath.Join(t.TempDir(), "model.safetensors")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := delta.OpenCheckpoint(path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		parts[state] = c
	}
	bundle, err := delta.NewBundle(w.schema, parts)
	if err != nil {
		t.Fatal(err)
	}
	root, err := delta.RootOf(t.Context(), bundle, nil)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestSumNoticesEveryByte(t *testing.T) {
	for _, f := range []form{{}, {states: true}} {
		w := newWeights(rand.New(rand.NewPCG(3, 4)), f, 0)
		files, want := w.files(), w.sum()
		for state, file := range files {
			for i := 8 + int(file[0]) + int(file[1])<<8; i < len(file); i += 13 {
				file[i] ^= 4
				if got, err := sumOf(files); err == nil && got == want {
					t.Fatalf("a flipped bit in byte %d of %d goes unseen", i, len(file))
				}
				file[i] ^= 4
			}
			for cut := range file {
				files[state] = file[:cut]
				if got, err := sumOf(files); err == nil && got == want {
					t.Fatalf("cut to %d of %d bytes goes unseen", cut, len(file))
				}
			}
			files[state] = file
		}
	}
}
