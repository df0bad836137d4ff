package safetensors

import (
	"errors"
	"fmt"
	"os"
)

// Patch is a checkpoint of one file that is changed where it lies. Nothing is atomic: whoever reads the file meanwhile
// reads a mixture, and so does everybody after a crash. It is for files that one's own caches are made of.
type Patch struct {
	*Checkpoint
	file File
}

// OpenPatchOn opens a checkpoint file for changes. A symlink is refused: it would lead to somebody else's file.
func OpenPatchOn(d Disk, path string) (*Patch, error) {
	p, err := openPatch(d, path)
	if err != nil {
		return nil, fmt.Errorf("open checkpoint for changes: %w", err)
	}
	return p, nil
}

func openPatch(d Disk, path string) (*Patch, error) {
	info, err := d.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file (%s)", path, info.Mode().Type())
	}
	c, err := openSingle(d, path)
	if err != nil {
		return nil, err
	}
	f, err := d.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	now, err := f.Stat()
	if err == nil && !d.SameFile(now, c.files[0].info) {
		err = fmt.Errorf("%s: was given to another file", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), c.Close())
	}
	return &Patch{Checkpoint: c, file: f}, nil
}

// WriteAt writes p into tensor i from off on.
func (p *Patch) WriteAt(i int, b []byte, off int64) error {
	if i < 0 || i >= len(p.tensors) {
		return fmt.Errorf("write tensor %d of %d: no such tensor", i, len(p.tensors))
	}
	at := p.places[i]
	if err := within(&p.tensors[i], len(b), off); err != nil {
		return fmt.Errorf("%s: write %w", at.file.path, err)
	}
	if _, err := p.file.WriteAt(b, at.off+off); err != nil {
		return fmt.Errorf("%s: tensor %s: %w", at.file.path, quote(p.tensors[i].Name), err)
	}
	return nil
}

// Close closes the file. What was written is with the system.
func (p *Patch) Close() error { return errors.Join(p.file.Close(), p.Checkpoint.Close()) }
