package safetensors

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
)

// Disk is the part of a file system that checkpoints need. OS is the real one. Paths are those of the system, errors
// name them and wrap its error numbers.
type Disk interface {
	// OpenFile opens path as os.OpenFile does, for reading or for both, with O_CREATE and O_EXCL where it must be new.
	OpenFile(path string, flag int, mode fs.FileMode) (File, error)
	Stat(path string) (fs.FileInfo, error)      // of what path leads to
	Lstat(path string) (fs.FileInfo, error)     // of path itself, be it a symlink
	SameFile(a, b fs.FileInfo) bool             // of this disk
	ReadDir(path string) ([]fs.DirEntry, error) // sorted by name
	Resolve(path string) (string, error)        // absolute, with every symlink followed
	Rename(from, to string) error               // in one step, also over a file that is there
	Remove(path string) error                   // a file or an empty directory
	SyncDir(path string) error                  // the names in this directory are durable after
}

// File is an open file. Its methods, except Close, may be called by many goroutines at once.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	// Reserve takes size bytes of the disk, where the file system can, so that writing them cannot fail for want of space.
	Reserve(size int64) error
	// Sync makes contents and size durable, but not the name.
	Sync() error
	// Lock takes the file for this File alone or fails at once, with EWOULDBLOCK when another one has it. The lock goes
	// with Close, or with the process.
	Lock() error
}

// readWhole returns the size bytes of f.
func readWhole(f File, size int64) ([]byte, error) {
	b := make([]byte, size)
	_, err := io.ReadFull(io.NewSectionReader(f, 0, size), b)
	return b, err
}

// lock takes f for one writer. File systems without locks, as Lustre often is, leave it to the caller that only one
// writer is at work.
func lock(f File) error {
	err := f.Lock()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.ENOLCK) {
		return nil
	}
	return err
}
