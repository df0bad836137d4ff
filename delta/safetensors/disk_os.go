package safetensors

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// OS is the file system of this machine.
type OS struct{}

// OpenFile is part of Disk.
func (OS) OpenFile(path string, flag int, mode fs.FileMode) (File, error) {
	f, err := os.OpenFile(path, flag, mode)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Stat is part of Disk.
func (OS) Stat(path string) (fs.FileInfo, error) { return os.Stat(path) }

// Lstat is part of Disk.
func (OS) Lstat(path string) (fs.FileInfo, error) { return os.Lstat(path) }

// SameFile is part of Disk.
func (OS) SameFile(a, b fs.FileInfo) bool { return os.SameFile(a, b) }

// ReadDir is part of Disk.
func (OS) ReadDir(path string) ([]fs.DirEntry, error) { return os.ReadDir(path) }

// Resolve is part of Disk.
func (OS) Resolve(path string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(resolved)
}

// Rename is part of Disk.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove is part of Disk.
func (OS) Remove(path string) error { return os.Remove(path) }

// SyncDir is part of Disk.
func (OS) SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// osFile is a file of this machine; see disk_*.go for what each system can do.
type osFile struct{ *os.File }
