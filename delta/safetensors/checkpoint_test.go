package safetensors

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func TestReadAtBounds(t *testing.T) {
	c := mustOpen(t, put(t, t.TempDir(), "x", pack(`{"t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, "abcd")))
	p := make([]byte, 2)
	if err := c.ReadAt(0, p, 2); err != nil || string(p) != "cd" {
		t.Errorf("read %q, %v", p, err)
	}
	if err := c.ReadAt(0, nil, 4); err != nil {
		t.Errorf("nothing at the end: %v", err)
	}
	for _, at := range []struct {
		i, n int
		off  int64
	}{{-1, 0, 0}, {1, 0, 0}, {0, 5, 0}, {0, 1, 4}, {0, 0, 5}, {0, 1, -1}, {0, 2, 1<<63 - 1}} {
		if c.ReadAt(at.i, make([]byte, at.n), at.off) == nil {
			t.Errorf("%+v: accepted", at)
		}
	}
}

func TestTruncatedAfterOpen(t *testing.T) {
	file := pack(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}`, "aaaabbbb")
	path := put(t, t.TempDir(), "x.safetensors", file)
	c := mustOpen(t, path)
	if err := os.Truncate(path, int64(len(file)-1)); err != nil {
		t.Fatal(err)
	}
	if got := string(contents(t, c, 0)); got != "aaaa" {
		t.Errorf("tensor a holds %q", got)
	}
	err := c.ReadAt(1, make([]byte, 4), 0)
	wantError(t, err, path, `tensor "b"`, "truncated while reading")
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cause lost: %v", err)
	}
}

func TestChanged(t *testing.T) {
	changes := map[string]func(dir, weights, index string) error{
		"longer":          func(_, w, _ string) error { return os.WriteFile(w, append(shard("a"), 'x'), 0o644) },
		"touched":         func(_, w, _ string) error { return os.Chtimes(w, time.Time{}, time.Unix(1, 0)) },
		"gone":            func(_, w, _ string) error { return os.Remove(w) },
		"index rewritten": func(_, _, i string) error { return os.Chtimes(i, time.Time{}, time.Unix(1, 0)) },
		"replaced by its like": func(dir, w, _ string) error {
			info, err := os.Stat(w)
			if err != nil {
				return err
			}
			other := filepath.Join(dir, "other")
			return errors.Join(os.WriteFile(other, shard("a"), 0o644), os.Chtimes(other, info.ModTime(), info.ModTime()), os.Rename(other, w))
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w, i := put(t, dir, "1", shard("a")), put(t, dir, indexName, []byte(`{"weight_map":{"a":"1"}}`))
			c := mustOpen(t, dir)
			if err := c.Changed(); err != nil {
				t.Fatalf("before: %v", err)
			}
			if err := change(dir, w, i); err != nil {
				t.Fatal(err)
			}
			wantError(t, c.Changed(), dir, "changed since it was opened")
		})
	}
}

func TestClosed(t *testing.T) {
	c, err := Open(put(t, t.TempDir(), "x", shard("a")))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.ReadAt(0, make([]byte, 1), 0); !errors.Is(err, os.ErrClosed) {
		t.Errorf("read after Close: %v", err)
	}
}

// TestThousandsOfTinyTensors writes and reads what a model with many experts looks like, by many hands at once.
func TestThousandsOfTinyTensors(t *testing.T) {
	const n, hands = 4000, 8
	tensors := make([]Tensor, n)
	for i := range tensors {
		tensors[i] = Tensor{fmt.Sprintf("layers.%d.experts.%d.w", i%61, i), "F32", []uint64{uint64(i % 3)}, int64(4 * (i % 3))}
	}
	fill := func(name string, size int64) []byte {
		return bytes.Repeat([]byte{name[len(name)-3]}, int(size))
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	w, err := Create(path, tensors, nil)
	if err != nil {
		t.Fatal(err)
	}
	each(t, n, hands, func(i int) error { return w.WriteAt(i, fill(tensors[i].Name, tensors[i].Size), 0) })
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	c := mustOpen(t, path)
	if len(c.Tensors()) != n {
		t.Fatalf("%d tensors", len(c.Tensors()))
	}
	each(t, n, hands, func(i int) error {
		tensor := c.Tensors()[i]
		p := make([]byte, tensor.Size)
		if err := c.ReadAt(i, p, 0); err != nil || !bytes.Equal(p, fill(tensor.Name, tensor.Size)) {
			return fmt.Errorf("%s: %q, %w", tensor.Name, p, err)
		}
		return nil
	})
}

// each calls f for 0 to n-1 from several goroutines.
func each(t *testing.T, n, hands int, f func(i int) error) {
	var wg sync.WaitGroup
	for h := range hands {
		wg.Go(func() {
			for i := h; i < n; i += hands {
				if err := f(i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
