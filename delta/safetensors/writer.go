package safetensors

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
)

// Writer fills a checkpoint of one file, beside the path that it will have.
// WriteAt and ReadAt may be called by many goroutines at once; Commit and Abort end its use.
type Writer struct {
	path    string
	tensors []Tensor
	places  []int64
	file    *partial

	mu   sync.Mutex // guards done
	done bool
}

// Create starts a checkpoint of one file. It is built in path+".partial", whose whole size is reserved at once,
// so that a full disk shows here and not halfway. Nothing at path changes before Commit.
// A nil metadata leaves that member out of the header.
func Create(path string, tensors []Tensor, metadata map[string]string) (*Writer, error) {
	return CreateOn(OS{}, path, tensors, metadata)
}

// CreateOn is Create on another disk than this machine's.
func CreateOn(d Disk, path string, tensors []Tensor, metadata map[string]string) (*Writer, error) {
	w, err := create(d, path, tensors, metadata)
	if err != nil {
		return nil, fmt.Errorf("create checkpoint %s: %w", path, err)
	}
	return w, nil
}

// create lays the file out, reserves it and writes its header.
func create(d Disk, path string, tensors []Tensor, metadata map[string]string) (*Writer, error) {
	l, err := newLayout(tensors, metadata)
	if err != nil {
		return nil, err
	}
	if info, err := d.Lstat(path); err == nil && info.IsDir() {
		return nil, errors.New("is a directory; name a file in it")
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := newPartial(d, path+partialSuffix)
	if err != nil {
		return nil, err
	}
	if err := f.prepare(l); err != nil {
		return nil, errors.Join(err, f.discard())
	}
	return &Writer{path: path, tensors: copyTensors(tensors), places: l.places, file: f}, nil
}

// copyTensors returns tensors that share nothing with the caller's.
func copyTensors(tensors []Tensor) []Tensor {
	list := slices.Clone(tensors)
	for i := range list {
		list[i].Shape = slices.Clone(list[i].Shape)
	}
	return list
}

// Tensors returns the tensors in the order given to Create. The caller must not change them.
func (w *Writer) Tensors() []Tensor { return w.tensors }

// WriteAt writes p into tensor i from off on. What is never written stays zero.
func (w *Writer) WriteAt(i int, p []byte, off int64) error {
	at, err := w.at(i, len(p), off)
	if err == nil {
		_, err = w.file.WriteAt(p, at)
	}
	if err != nil {
		return fmt.Errorf("%s: write %w", w.path, err)
	}
	return nil
}

// ReadAt fills p with what tensor i holds by now from off on.
func (w *Writer) ReadAt(i int, p []byte, off int64) error {
	at, err := w.at(i, len(p), off)
	if err == nil {
		_, err = w.file.ReadAt(p, at)
	}
	if err != nil {
		return fmt.Errorf("%s: read back %w", w.path, err)
	}
	return nil
}

// at returns the place in the file of n bytes of tensor i.
func (w *Writer) at(i, n int, off int64) (int64, error) {
	if i < 0 || i >= len(w.tensors) {
		return 0, fmt.Errorf("tensor %d of %d: no such tensor", i, len(w.tensors))
	}
	if err := within(&w.tensors[i], n, off); err != nil {
		return 0, err
	}
	return w.places[i] + off, nil
}

// finish claims the right to end w, which only one call gets.
func (w *Writer) finish() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := !w.done
	w.done = true
	return first
}

// Commit makes the file durable and gives it its name, replacing what has it; a symlink is replaced, never followed.
// After a failed fsync the pages may be gone from memory and disk alike, so the file is thrown away, not retried.
func (w *Writer) Commit() error {
	if !w.finish() {
		return fmt.Errorf("commit checkpoint %s: it was committed or aborted before", w.path)
	}
	if err := w.file.publish(w.path); err != nil {
		return fmt.Errorf("commit checkpoint %s: %w", w.path, err)
	}
	return nil
}

// Place gives the file its name as Commit does, but leaves it to the system when it reaches the disk: a crash of the
// machine may leave anything there. It is for caches that are checked after a boot, and saves waiting for the disk.
func (w *Writer) Place() error {
	if !w.finish() {
		return fmt.Errorf("place checkpoint %s: it was committed or aborted before", w.path)
	}
	if err := w.file.rename(w.path); err != nil {
		return fmt.Errorf("place checkpoint %s: %w", w.path, err)
	}
	return nil
}

// Abort throws the file away. After Commit, or a second time, it does nothing.
func (w *Writer) Abort() error {
	if !w.finish() {
		return nil
	}
	if err := w.file.discard(); err != nil {
		return fmt.Errorf("abort checkpoint: %w", err)
	}
	return nil
}
