package faults

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"github.com/sparsecast/sparsecast/node/files"
)

// Failing is a file system on which one call fails: any, also the real one. Its fields are set before the first call.
type Failing struct {
	// On is the file system that the other calls reach.
	On files.FS
	// When picks the calls that count; nil picks all. Op.N counts every call.
	When func(Op) bool
	// Nth is the one of them that fails, from 1 on; 0 is none.
	Nth uint64
	// Forever lets all picked calls after that one fail as well, as on a disk that is full or broken.
	Forever bool
	// Err is what it fails with, EIO when it is nil.
	Err error
	// Short lets a write put half of its bytes before it fails.
	Short bool

	mu     sync.Mutex // guards the counts
	calls  uint64
	picked uint64
}

var _ files.FS = (*Failing)(nil)

// Picked returns how many calls When has picked.
func (f *Failing) Picked() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.picked
}

// check returns the error of a call that is to fail.
func (f *Failing) check(call, path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.When != nil && !f.When(Op{N: f.calls, Call: call, Path: path, Writes: writing[call]}) {
		return nil
	}
	f.picked++
	if f.Nth == 0 || f.picked < f.Nth || f.picked > f.Nth && !f.Forever {
		return nil
	}
	if f.Err == nil {
		return failed(call, path, syscall.EIO)
	}
	return failed(call, path, f.Err)
}

// OpenFile is part of files.FS.
func (f *Failing) OpenFile(path string, flag int, mode fs.FileMode) (files.File, error) {
	if err := f.check(openCall(flag), path); err != nil {
		return nil, err
	}
	file, err := f.On.OpenFile(path, flag, mode)
	if err != nil {
		return nil, err
	}
	return failingFile{file, f, path}, nil
}

// Stat is part of files.FS.
func (f *Failing) Stat(path string) (fs.FileInfo, error) {
	if err := f.check("stat", path); err != nil {
		return nil, err
	}
	return f.On.Stat(path)
}

// Lstat is part of files.FS.
func (f *Failing) Lstat(path string) (fs.FileInfo, error) {
	if err := f.check("lstat", path); err != nil {
		return nil, err
	}
	return f.On.Lstat(path)
}

// SameFile is part of files.FS.
func (f *Failing) SameFile(a, b fs.FileInfo) bool { return f.On.SameFile(a, b) }

// ReadDir is part of files.FS.
func (f *Failing) ReadDir(path string) ([]fs.DirEntry, error) {
	if err := f.check("readdir", path); err != nil {
		return nil, err
	}
	return f.On.ReadDir(path)
}

// Resolve is part of files.FS.
func (f *Failing) Resolve(path string) (string, error) {
	if err := f.check("resolve", path); err != nil {
		return "", err
	}
	return f.On.Resolve(path)
}

// Readlink is part of files.FS.
func (f *Failing) Readlink(path string) (string, error) {
	if err := f.check("readlink", path); err != nil {
		return "", err
	}
	return f.On.Readlink(path)
}

// Rename is part of files.FS.
func (f *Failing) Rename(from, to string) error {
	if err := f.check("rename", to); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: errors.Unwrap(err)}
	}
	return f.On.Rename(from, to)
}

// Remove is part of files.FS.
func (f *Failing) Remove(path string) error {
	if err := f.check("remove", path); err != nil {
		return err
	}
	return f.On.Remove(path)
}

// RemoveAll is part of files.FS; it counts as one call here.
func (f *Failing) RemoveAll(path string) error {
	if err := f.check("remove", path); err != nil {
		return err
	}
	return f.On.RemoveAll(path)
}

// MkdirAll is part of files.FS; it counts as one call here.
func (f *Failing) MkdirAll(path string, mode fs.FileMode) error {
	if err := f.check("mkdir", path); err != nil {
		return err
	}
	return f.On.MkdirAll(path, mode)
}

// Symlink is part of files.FS.
func (f *Failing) Symlink(target, path string) error {
	if err := f.check("symlink", path); err != nil {
		return err
	}
	return f.On.Symlink(target, path)
}

// SyncDir is part of files.FS.
func (f *Failing) SyncDir(path string) error {
	if err := f.check("syncdir", path); err != nil {
		return err
	}
	return f.On.SyncDir(path)
}

// Free is part of files.FS. It never fails of its own: nothing depends on it.
func (f *Failing) Free(path string) (uint64, error) { return f.On.Free(path) }

// BootID is part of files.FS.
func (f *Failing) BootID() string { return f.On.BootID() }

// failingFile is an open file of a Failing.
type failingFile struct {
	files.File
	fs   *Failing
	path string
}

func (f failingFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.fs.check("read", f.path); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

func (f failingFile) WriteAt(p []byte, off int64) (int, error) {
	err := f.fs.check("write", f.path)
	if err == nil {
		return f.File.WriteAt(p, off)
	}
	if !f.fs.Short {
		return 0, err
	}
	n, cause := f.File.WriteAt(p[:len(p)/2], off)
	if cause != nil {
		return n, cause
	}
	return n, err
}

func (f failingFile) Stat() (fs.FileInfo, error) {
	if err := f.fs.check("fstat", f.path); err != nil {
		return nil, err
	}
	return f.File.Stat()
}

func (f failingFile) Truncate(size int64) error {
	if err := f.fs.check("truncate", f.path); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f failingFile) Reserve(size int64) error {
	if err := f.fs.check("reserve", f.path); err != nil {
		return err
	}
	return f.File.Reserve(size)
}

func (f failingFile) Sync() error {
	if err := f.fs.check("sync", f.path); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f failingFile) Lock() error {
	if err := f.fs.check("lock", f.path); err != nil {
		return err
	}
	return f.File.Lock()
}

// Close reports a failure, but closes: there is no second try.
func (f failingFile) Close() error {
	err := f.fs.check("close", f.path)
	if e := f.File.Close(); err == nil {
		err = e
	}
	return err
}
