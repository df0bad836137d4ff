package safetensors

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// pack returns a file with the given header and data.
func pack(header, data string) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

// put writes a file and returns its path.
func put(t testing.TB, dir, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// mustOpen opens a checkpoint that the test closes.
func mustOpen(t testing.TB, path string) *Checkpoint {
	t.Helper()
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// wantError fails unless err contains all of the parts.
func wantError(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q lacks %q", err, p)
		}
	}
}

// contents reads a whole tensor.
func contents(t rapid.TB, c *Checkpoint, i int) []byte {
	t.Helper()
	p := make([]byte, c.Tensors()[i].Size)
	if err := c.ReadAt(i, p, 0); err != nil {
		t.Fatal(err)
	}
	return p
}

// save writes a whole checkpoint.
func save(t rapid.TB, path string, tensors []Tensor, data [][]byte, metadata map[string]string) {
	t.Helper()
	w, err := Create(path, tensors, metadata)
	if err != nil {
		t.Fatal(err)
	}
	for i := range tensors {
		if err := w.WriteAt(i, data[i], 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}
