package faults

import (
	"io"
	"io/fs"
	"syscall"
	"time"
)

const (
	// page is the unit in which files are kept or lost, in bytes.
	page = 4 << 10
	// maxSize bounds a file, in bytes; it lies in memory.
	maxSize = 1 << 36
)

// inode is a file, directory or symlink, apart from its name.
type inode struct {
	mode  fs.FileMode
	mtime time.Time

	target   string            // of a symlink
	names    map[string]*inode // of a directory, by the cache
	synced   map[string]*inode // of a directory, by the platter
	unsynced []*change         // of a directory's names, in order

	size  int64  // by the cache
	data  []byte // by the cache; zeros follow up to size
	dirty pages  // pages written since the last sync
	taken pages  // pages that take space

	plate     []byte // data by the platter
	plateSize int64
	plateTime time.Time

	links  int // names by the cache
	opened int // open files
	locked *handle
}

// umask is taken from the modes that processes ask for.
const umask fs.FileMode = 0o022

func newFile(mode fs.FileMode, now time.Time) *inode {
	return &inode{mode: mode.Perm(), mtime: now, plateTime: now}
}

func newDir(mode fs.FileMode, now time.Time) *inode {
	return &inode{mode: fs.ModeDir | mode.Perm(), mtime: now, names: map[string]*inode{}, synced: map[string]*inode{}}
}

func (n *inode) isDir() bool  { return n.mode.IsDir() }
func (n *inode) isLink() bool { return n.mode&fs.ModeSymlink != 0 }

// readAt is io.ReaderAt by the cache.
func (n *inode) readAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, syscall.EINVAL
	}
	if off >= n.size {
		return 0, eofUnless(len(p) == 0)
	}
	got := min(int64(len(p)), n.size-off)
	copied := 0
	if off < int64(len(n.data)) {
		copied = copy(p[:got], n.data[off:])
	}
	clear(p[copied:got])
	return int(got), eofUnless(got == int64(len(p)))
}

func eofUnless(whole bool) error {
	if whole {
		return nil
	}
	return io.EOF
}

// write puts p at off, for which there is room.
func (n *inode) write(p []byte, off int64) {
	if len(p) == 0 {
		return
	}
	end := off + int64(len(p))
	n.data = extend(n.data, end)
	copy(n.data[off:], p)
	n.size = max(n.size, end)
	n.dirty.add(pagesOf(off, end))
}

// resize cuts or extends the file.
func (n *inode) resize(size int64) {
	if size < n.size {
		n.dirty.add(pagesOf(size, n.size))
		n.data = n.data[:min(int64(len(n.data)), size)]
	}
	n.size = size
}

// flush makes the contents durable.
func (n *inode) flush() {
	for i := range n.dirty.all() {
		n.plate = putPage(n.plate, n.data, i)
	}
	n.plate = n.plate[:min(int64(len(n.plate)), n.size)]
	n.plateSize, n.plateTime = n.size, n.mtime
	n.dirty = nil
}

// putPage copies page i of from, which is followed by zeros, to a grown dst.
func putPage(dst, from []byte, i int64) []byte {
	begin := i * page
	end := min(begin+page, max(int64(len(from)), begin))
	dst = extend(dst, end)
	if begin < end {
		copy(dst[begin:end], from[begin:end])
	}
	if tail := min(begin+page, int64(len(dst))); end < tail {
		clear(dst[end:tail])
	}
	return dst
}

// extend returns b with zeros up to size, and b itself when it is long enough.
func extend(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		return b
	}
	if size <= int64(cap(b)) {
		grown := b[:size]
		clear(grown[len(b):])
		return grown
	}
	return append(b, make([]byte, size-int64(len(b)))...)
}

// pagesOf returns the pages that the bytes from off to end touch.
func pagesOf(off, end int64) (first, past int64) { return off / page, (end + page - 1) / page }
