package safetensors

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// partialSuffix marks a file that is being written. It is always the same, so that what a crash
	// leaves is replaced by the next try and does not pile up; a lock tells such leftovers from live writers.
	partialSuffix = ".partial"
	// maxTries bounds how often a partial file may be snatched away while it is claimed.
	maxTries = 8
)

// partial is a locked file on its way to another name.
type partial struct {
	File
	disk Disk
	path string
}

// newPartial creates the file at path, replacing what a dead writer left there.
func newPartial(d Disk, path string) (*partial, error) {
	for range maxTries {
		f, err := d.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			if err := removeStale(d, path); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		held, err := claim(d, f, path)
		if held {
			return &partial{f, d, path}, nil
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: taken by another writer again and again; let only one write there", path)
}

// claim locks f and tells whether it still has its name: another writer may have taken it for a leftover.
func claim(d Disk, f File, path string) (held bool, err error) {
	if err := lock(f); err != nil {
		return false, fmt.Errorf("%s: another writer holds it; let only one write there: %w", path, err)
	}
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := d.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && d.SameFile(mine, named), err
}

// removeStale removes the file at path unless a live writer holds it.
func removeStale(d Disk, path string) error {
	info, err := d.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: in the way and not a regular file; remove it", path)
	}
	f, err := d.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	held, err := claim(d, f, path)
	if !held {
		return err
	}
	return d.Remove(path)
}

// prepare reserves the whole file and writes its header.
func (f *partial) prepare(l *layout) error {
	if err := f.Truncate(l.size); err != nil {
		return fmt.Errorf("reserve %d bytes: %w", l.size, err)
	}
	if err := f.Reserve(l.size); err != nil {
		return fmt.Errorf("%s: reserve %d bytes: %w", f.path, l.size, err)
	}
	if _, err := f.WriteAt(l.head, 0); err != nil {
		return fmt.Errorf("write header: %w", err)
	}
	return nil
}

// publish syncs the file and renames it to path. The lock is held until the name is given up.
func (f *partial) publish(path string) error {
	if err := f.Sync(); err != nil {
		return errors.Join(fmt.Errorf("thrown away, as it could not be made durable: %w", err), f.discard())
	}
	if err := f.rename(path); err != nil {
		return err
	}
	if err := f.disk.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("in place, but it may not outlast a crash: %w", err)
	}
	return nil
}

// rename moves the file to path and lets it go.
func (f *partial) rename(path string) error {
	if err := f.disk.Rename(f.path, path); err != nil {
		return errors.Join(err, f.discard())
	}
	return f.Close()
}

// discard removes the file and lets it go.
func (f *partial) discard() error {
	err := f.disk.Remove(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
