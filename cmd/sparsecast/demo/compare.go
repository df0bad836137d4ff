package demo

import (
	"crypto/sha256"
	"fmt"
	"io"

	"github.com/sparsecast/sparsecast/delta/safetensors"
	"golang.org/x/sync/errgroup"
)

// compare tells whether the checkpoints in places hold the same tensors as the one at path. It reads every file whole
// and knows nothing of roots: the codec must not judge itself.
func compare(path string, places []string) (bool, error) {
	digests := make([][sha256.Size]byte, len(places)+1)
	var g errgroup.Group
	for i, p := range append([]string{path}, places...) {
		g.Go(func() (err error) {
			digests[i], err = digestTensors(p)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return false, fmt.Errorf("compare weights: %w", err)
	}
	for _, d := range digests[1:] {
		if d != digests[0] {
			return false, nil
		}
	}
	return true, nil
}

// digestTensors is the SHA-256 over names, dtypes, shapes and bytes of all tensors in the order of their names.
func digestTensors(path string) (d [sha256.Size]byte, err error) {
	c, err := safetensors.Open(path)
	if err != nil {
		return d, err
	}
	defer c.Close()
	h := sha256.New()
	buf := make([]byte, 1<<20)
	for i, t := range c.Tensors() {
		fmt.Fprintf(h, "%q %q %v\n", t.Name, t.DType, t.Shape)
		if err := copyTensor(h, c, i, t.Size, buf); err != nil {
			return d, err
		}
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

func copyTensor(w io.Writer, c *safetensors.Checkpoint, i int, size int64, buf []byte) error {
	for off := int64(0); off < size; {
		p := buf[:min(int64(len(buf)), size-off)]
		if err := c.ReadAt(i, p, off); err != nil {
			return err
		}
		if _, err := w.Write(p); err != nil {
			return err
		}
		off += int64(len(p))
	}
	return nil
}
