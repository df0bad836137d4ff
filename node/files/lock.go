package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const lockName = ".lock"

// Lock takes the directory for this process until unlock is called or the process ends, and removes what a crash
// left half-written. It fails at once when another process, or another Dir of this one, holds the lock.
func (d *Dir) Lock() (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(d.root, lockName), os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", explain(err))
	}
	if err := d.claim(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return sync.OnceFunc(func() { f.Close() }), nil // the lock goes with the descriptor
}

func (d *Dir) claim(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("data directory %s is in use by process %s: stop that node, or set data: to another directory", d.root, owner(f))
	}
	if err != nil {
		return fmt.Errorf("lock data directory %s: %w; it must lie on a file system with locks", d.root, err)
	}
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("lock data directory: %w", explain(err))
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return fmt.Errorf("lock data directory: %w", explain(err))
	}
	return d.sweep()
}

// owner returns the process ID that the holder of the lock wrote into it.
func owner(f *os.File) string {
	b, _ := io.ReadAll(io.NewSectionReader(f, 0, 32)) // a hint for a human; the lock itself does not depend on it
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return "unknown"
	}
	return strconv.Itoa(pid)
}

// sweep removes the temporary files of writes that never ended.
func (d *Dir) sweep() error {
	err := filepath.WalkDir(d.root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasPrefix(e.Name(), tempMark) {
			return err
		}
		return os.Remove(p)
	})
	if err != nil {
		return fmt.Errorf("remove leftovers: %w", explain(err))
	}
	return nil
}
