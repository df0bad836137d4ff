package faults

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// handle is an open file of a Mount.
type handle struct {
	mount    *Mount
	node     *inode
	path     string
	writable bool
	closed   bool
}

// do is one call on the file.
func (h *handle) do(call string, step func() error) error {
	return h.mount.do(call, h.path, func() error {
		if h.closed {
			return os.ErrClosed
		}
		return step()
	})
}

// change is do for what needs a file that is open for writing.
func (h *handle) change(call string, step func() error) error {
	return h.do(call, func() error {
		if !h.writable {
			return syscall.EBADF
		}
		h.node.mtime = h.mount.disk.tick()
		return step()
	})
}

// ReadAt is part of files.File.
func (h *handle) ReadAt(p []byte, off int64) (n int, err error) {
	end := false
	err = h.do("read", func() error {
		if h.node.isDir() {
			return syscall.EISDIR
		}
		n, err = h.node.readAt(p, off)
		if end = errors.Is(err, io.EOF); end {
			return nil
		}
		return err
	})
	if end && err == nil {
		err = io.EOF // bare, as readers compare it
	}
	return n, err
}

// WriteAt is part of files.File.
func (h *handle) WriteAt(p []byte, off int64) (n int, err error) {
	err = h.change("write", func() error {
		if off < 0 {
			return syscall.EINVAL
		}
		fits, err := h.mount.disk.take(h.node, off, off+int64(len(p)))
		n = int(fits - off)
		h.node.write(p[:n], off)
		return err
	})
	return n, err
}

// Truncate is part of files.File.
func (h *handle) Truncate(size int64) error {
	return h.change("truncate", func() error { return h.mount.disk.resize(h.node, size) })
}

// Reserve is part of files.File.
func (h *handle) Reserve(size int64) error {
	return h.change("reserve", func() error {
		_, err := h.mount.disk.take(h.node, 0, size)
		if err == nil && size > h.node.size {
			h.node.resize(size)
		}
		return err
	})
}

// Sync is part of files.File.
func (h *handle) Sync() error {
	entered := false
	err := h.do("sync", func() error {
		entered = true
		if h.node.isDir() {
			h.mount.disk.syncDir(h.node)
		} else {
			h.node.flush()
		}
		return nil
	})
	if err != nil && !entered {
		h.failSync()
	}
	return err
}

// failSync forgets what was dirty: the system tells of a failed write once and then takes the pages for clean.
func (h *handle) failSync() {
	h.mount.disk.mu.Lock()
	defer h.mount.disk.mu.Unlock()
	if !h.mount.dead && !h.closed {
		h.node.dirty = nil
	}
}

// Stat is part of files.File.
func (h *handle) Stat() (i fs.FileInfo, err error) {
	err = h.do("fstat", func() error {
		i = infoOf(filepath.Base(h.path), h.node)
		return nil
	})
	return i, err
}

// Lock is part of files.File.
func (h *handle) Lock() error {
	return h.do("lock", func() error {
		if h.node.locked != nil && h.node.locked != h {
			return syscall.EWOULDBLOCK
		}
		h.node.locked = h
		return nil
	})
}

// Close is part of files.File.
func (h *handle) Close() error {
	return h.do("close", func() error {
		h.drop()
		return nil
	})
}

// drop gives up the file and its lock.
func (h *handle) drop() {
	if h.closed {
		return
	}
	h.closed = true
	delete(h.mount.handles, h)
	if h.node.locked == h {
		h.node.locked = nil
	}
	h.node.opened--
	h.mount.disk.release(h.node)
}

// info is what a file looked like.
type info struct {
	name string
	node *inode // tells files apart, and is not looked into
	size int64
	mode fs.FileMode
	time time.Time
}

func infoOf(name string, n *inode) info {
	i := info{name, n, n.size, n.mode, n.mtime}
	if n.isLink() {
		i.size = int64(len(n.target))
	}
	return i
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return i.time }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }
