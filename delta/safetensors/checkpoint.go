package safetensors

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Checkpoint is a set of tensors in one or more open files.
// Its methods, except Close, may be called by many goroutines at once.
type Checkpoint struct {
	tensors  []Tensor
	places   []place // by tensor
	files    []*weights
	index    *stamp // of the index file, nil without one
	metadata map[string]string
	counted  metadataCount // what metadata holds
}

// place is where a tensor's bytes begin.
type place struct {
	file *weights
	off  int64
}

// add takes over an open file with its tensors, also when it fails.
func (c *Checkpoint) add(w *weights, h *header) error {
	c.files = append(c.files, w)
	for _, e := range h.entries {
		c.tensors = append(c.tensors, e.Tensor)
		c.places = append(c.places, place{w, w.buffer + int64(e.begin)})
	}
	if c.metadata == nil && h.metadata != nil {
		c.metadata = make(map[string]string, len(h.metadata))
	}
	for k, v := range h.metadata {
		if _, set := c.metadata[k]; set {
			continue
		}
		if err := c.counted.add(k, v); err != nil {
			return err
		}
		c.metadata[k] = v
	}
	return nil
}

// sort brings the tensors of several files into the order of their names.
func (c *Checkpoint) sort() {
	order := make([]int, len(c.tensors))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(c.tensors[a].Name, c.tensors[b].Name) })
	tensors, places := make([]Tensor, len(order)), make([]place, len(order))
	for i, from := range order {
		tensors[i], places[i] = c.tensors[from], c.places[from]
	}
	c.tensors, c.places = tensors, places
}

// Tensors returns all tensors, sorted bytewise by name. The caller must not change them.
func (c *Checkpoint) Tensors() []Tensor { return c.tensors }

// Find returns the index of the tensor called name.
func (c *Checkpoint) Find(name string) (i int, found bool) {
	return slices.BinarySearchFunc(c.tensors, name, func(t Tensor, name string) int { return cmp.Compare(t.Name, name) })
}

// ReadAt fills p with the bytes of tensor i from off on. It fails rather than fill p in part.
func (c *Checkpoint) ReadAt(i int, p []byte, off int64) error {
	if i < 0 || i >= len(c.tensors) {
		return fmt.Errorf("read tensor %d of %d: no such tensor", i, len(c.tensors))
	}
	at := c.places[i]
	if err := within(&c.tensors[i], len(p), off); err != nil {
		return fmt.Errorf("%s: read %w", at.file.path, err)
	}
	if err := at.file.readFull(p, at.off+off); err != nil {
		return fmt.Errorf("%s: tensor %s: %w", at.file.path, quote(c.tensors[i].Name), err)
	}
	return nil
}

// within reports unless n bytes from off on lie inside t.
func within(t *Tensor, n int, off int64) error {
	if off < 0 || off > t.Size || int64(n) > t.Size-off {
		return fmt.Errorf("tensor %s: %d bytes from %d on, it has %d", quote(t.Name), n, off, t.Size)
	}
	return nil
}

// Metadata returns the free-form strings of the header, nil when there are none.
// For several files it is their union; where they differ, the first file by name decides.
func (c *Checkpoint) Metadata() map[string]string { return c.metadata }

// Files returns the absolute paths of the weight files, with symlinks resolved.
func (c *Checkpoint) Files() []string {
	paths := make([]string, len(c.files))
	for i, w := range c.files {
		paths[i] = w.resolved
	}
	return paths
}

// Changed reports a file whose size, modification time or inode is not what it was when it was opened:
// someone is still writing, and what was read may be a mixture.
func (c *Checkpoint) Changed() error {
	if c.index != nil {
		if err := c.index.changed(); err != nil {
			return err
		}
	}
	for _, w := range c.files {
		if err := w.changed(); err != nil {
			return err
		}
	}
	return nil
}

// Close closes all files.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, w := range c.files {
		errs = append(errs, w.file.Close())
	}
	return errors.Join(errs...)
}
