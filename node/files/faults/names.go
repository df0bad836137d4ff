package faults

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// MkdirAll is part of files.FS.
func (m *Mount) MkdirAll(path string, mode fs.FileMode) error {
	info, err := m.Stat(path)
	if err == nil && !info.IsDir() {
		return failed("mkdir", path, syscall.ENOTDIR)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := m.MkdirAll(filepath.Dir(path), mode); err != nil {
		return err
	}
	return m.do("mkdir", path, func() error {
		s, err := m.disk.walk(path, true)
		if err != nil {
			return err
		}
		if s.node == nil {
			node := newDir(mode&^umask, m.disk.tick())
			m.disk.apply(set{s.dir, s.name, node})
		}
		return nil
	})
}

// Symlink is part of files.FS.
func (m *Mount) Symlink(target, path string) error {
	return m.do("symlink", path, func() error {
		s, err := m.disk.walk(path, false)
		if err != nil {
			return err
		}
		if s.node != nil {
			return syscall.EEXIST
		}
		m.disk.apply(set{s.dir, s.name, &inode{mode: fs.ModeSymlink | 0o777, mtime: m.disk.tick(), target: target}})
		return nil
	})
}

// Rename is part of files.FS. Directories are not renamed.
func (m *Mount) Rename(from, to string) error {
	err := m.enter("rename", to, true)
	if err == nil {
		err = m.rename(from, to)
		m.disk.mu.Unlock()
	}
	if err == nil || errors.Is(err, ErrKilled) {
		return err
	}
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
}

func (m *Mount) rename(from, to string) error {
	old, err := m.disk.find(from, false)
	if err != nil {
		return err
	}
	place, err := m.disk.walk(to, false)
	switch {
	case err != nil:
		return err
	case place.node == old.node:
		return nil
	case old.node.isDir():
		return errors.ErrUnsupported
	case place.node != nil && place.node.isDir():
		return syscall.EEXIST // as os.Rename says
	}
	m.disk.apply(set{place.dir, place.name, old.node}, set{old.dir, old.name, nil})
	return nil
}

// Remove is part of files.FS.
func (m *Mount) Remove(path string) error {
	return m.do("remove", path, func() error {
		s, err := m.disk.find(path, false)
		switch {
		case err != nil:
			return err
		case s.dir == nil:
			return syscall.EBUSY
		case s.node.isDir() && len(s.node.names) > 0:
			return syscall.ENOTEMPTY
		}
		m.disk.apply(set{s.dir, s.name, nil})
		return nil
	})
}

// RemoveAll is part of files.FS.
func (m *Mount) RemoveAll(path string) error {
	info, err := m.Lstat(path)
	if err == nil && info.IsDir() {
		err = m.removeBelow(path)
	}
	if err == nil {
		err = m.Remove(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (m *Mount) removeBelow(path string) error {
	entries, err := m.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := m.RemoveAll(filepath.Join(path, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// SyncDir is part of files.FS.
func (m *Mount) SyncDir(path string) error {
	return m.do("syncdir", path, func() error {
		s, err := m.disk.find(path, true)
		if err != nil {
			return err
		}
		if !s.node.isDir() {
			s.node.flush() // what fsync does with a file
			return nil
		}
		m.disk.syncDir(s.node)
		return nil
	})
}
