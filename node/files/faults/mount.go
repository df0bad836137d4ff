package faults

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/sparsecast/sparsecast/node/files"
)

// Mount is a Disk as one process sees it, a files.FS.
type Mount struct {
	// OnCall, unless nil, is asked before every call; an error makes the call fail with it and without effect. It may
	// kill the mount or fail the power, and must be set before the first call.
	OnCall func(Op) error

	disk    *Disk
	boot    int
	calls   uint64
	dead    bool
	handles map[*handle]struct{}
}

var _ files.FS = (*Mount)(nil)

// Mount returns the disk for one more process.
func (d *Disk) Mount() *Mount {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := &Mount{disk: d, boot: d.boots, handles: map[*handle]struct{}{}}
	d.mounts = append(d.mounts, m)
	return m
}

// Kill ends the process: from now on all its calls fail with ErrKilled, and its locks are free.
func (m *Mount) Kill() {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	m.kill()
	m.disk.mounts = slices.DeleteFunc(m.disk.mounts, func(o *Mount) bool { return o == m })
}

func (m *Mount) kill() {
	m.dead = true
	for h := range m.handles {
		h.drop()
	}
}

// Calls returns how many calls there were.
func (m *Mount) Calls() uint64 {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	return m.calls
}

// enter begins a call, and leaves the disk locked unless it fails.
func (m *Mount) enter(call, path string, writes bool) error {
	m.disk.mu.Lock()
	if m.dead {
		m.disk.mu.Unlock()
		return ErrKilled
	}
	m.calls++
	op := Op{N: m.calls, Call: call, Path: path, Writes: writes}
	if m.OnCall != nil {
		m.disk.mu.Unlock() // it may call back
		if err := m.OnCall(op); err != nil {
			return failed(call, path, err)
		}
		m.disk.mu.Lock()
	}
	var err error
	switch {
	case m.dead:
		err = ErrKilled
	case m.disk.readOnly && writes && call != "sync" && call != "syncdir":
		err = failed(call, path, syscall.EROFS)
	}
	if err != nil {
		m.disk.mu.Unlock()
	}
	return err
}

// do is enter, a step under the lock, and the end of the call.
func (m *Mount) do(call, path string, step func() error) error {
	if err := m.enter(call, path, writing[call]); err != nil {
		return err
	}
	defer m.disk.mu.Unlock()
	if err := step(); err != nil {
		return failed(call, path, err)
	}
	return nil
}

const knownFlags = os.O_RDONLY | os.O_WRONLY | os.O_RDWR | os.O_CREATE | os.O_EXCL | syscall.O_NONBLOCK

// OpenFile is part of files.FS. It knows O_CREATE, O_EXCL and O_NONBLOCK.
func (m *Mount) OpenFile(path string, flag int, mode fs.FileMode) (files.File, error) {
	call := openCall(flag)
	if err := m.enter(call, path, writing[call] || flag&(os.O_WRONLY|os.O_RDWR) != 0); err != nil {
		return nil, err
	}
	defer m.disk.mu.Unlock()
	h, err := m.open(path, flag, mode)
	if err != nil {
		return nil, failed(call, path, err)
	}
	return h, nil
}

func (m *Mount) open(path string, flag int, mode fs.FileMode) (*handle, error) {
	if flag&^knownFlags != 0 {
		return nil, fmt.Errorf("flags %#x: %w", flag, errors.ErrUnsupported)
	}
	create, exclusive := flag&os.O_CREATE != 0, flag&os.O_EXCL != 0
	s, err := m.disk.walk(path, !create || !exclusive)
	if err != nil {
		return nil, err
	}
	writable := flag&(os.O_WRONLY|os.O_RDWR) != 0
	switch {
	case s.node == nil && !create:
		return nil, syscall.ENOENT
	case s.node == nil:
		s.node = newFile(mode&^umask, m.disk.tick())
		m.disk.apply(set{s.dir, s.name, s.node})
	case create && exclusive:
		return nil, syscall.EEXIST
	case s.node.isDir() && (writable || create):
		return nil, syscall.EISDIR
	}
	h := &handle{mount: m, node: s.node, path: path, writable: writable}
	s.node.opened++
	m.handles[h] = struct{}{}
	return h, nil
}

// Stat is part of files.FS.
func (m *Mount) Stat(path string) (fs.FileInfo, error) { return m.stat("stat", path, true) }

// Lstat is part of files.FS.
func (m *Mount) Lstat(path string) (fs.FileInfo, error) { return m.stat("lstat", path, false) }

func (m *Mount) stat(call, path string, follow bool) (i fs.FileInfo, err error) {
	err = m.do(call, path, func() error {
		s, err := m.disk.find(path, follow)
		if err == nil {
			i = infoOf(filepath.Base(path), s.node)
		}
		return err
	})
	return i, err
}

// SameFile is part of files.FS.
func (m *Mount) SameFile(a, b fs.FileInfo) bool {
	x, y := a.(info), b.(info)
	return x.node == y.node
}

// ReadDir is part of files.FS.
func (m *Mount) ReadDir(path string) (list []fs.DirEntry, err error) {
	err = m.do("readdir", path, func() error {
		s, err := m.disk.find(path, true)
		if err != nil {
			return err
		}
		if !s.node.isDir() {
			return syscall.ENOTDIR
		}
		for _, name := range slices.Sorted(maps.Keys(s.node.names)) {
			list = append(list, fs.FileInfoToDirEntry(infoOf(name, s.node.names[name])))
		}
		return nil
	})
	return list, err
}

// Resolve is part of files.FS.
func (m *Mount) Resolve(path string) (resolved string, err error) {
	err = m.do("resolve", path, func() error {
		s, err := m.disk.find(path, true)
		resolved = s.path
		return err
	})
	return resolved, err
}

// Readlink is part of files.FS.
func (m *Mount) Readlink(path string) (target string, err error) {
	err = m.do("readlink", path, func() error {
		s, err := m.disk.find(path, false)
		if err != nil {
			return err
		}
		if !s.node.isLink() {
			return syscall.EINVAL
		}
		target = s.node.target
		return nil
	})
	return target, err
}

// Free is part of files.FS. It is no call, since nothing depends on it, and tells nothing of a disk without a limit.
func (m *Mount) Free(path string) (uint64, error) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	if m.disk.limit == 0 {
		return 0, failed("free", path, errors.ErrUnsupported)
	}
	return uint64(max(0, m.disk.limit-m.disk.used) * page), nil
}

// BootID is part of files.FS.
func (m *Mount) BootID() string { return "boot " + strconv.Itoa(m.boot) }
