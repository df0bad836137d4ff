package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

const lockName = ".lock"

// Lock takes the directory for this process until unlock is called or the process ends, and removes what a crash
// left half-written. It fails at once when another process, or another Dir of this one, holds the lock.
func (d *Dir) Lock() (unlock func(), err error) {
	f, err := d.fs.OpenFile(filepath.Join(d.root, lockName), os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, fmt.Errorf("lock %s directory: %w", d.setting, d.Explain(err))
	}
	if err := d.claim(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return sync.OnceFunc(func() { f.Close() }), nil // the lock goes with the descriptor
}

func (d *Dir) claim(f File) error {
	err := f.Lock()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("%s directory %s is in use by process %s: stop that node, or set %[1]s: to another directory", d.setting, d.root, owner(f))
	}
	if err != nil {
		return fmt.Errorf("lock %s directory %s: %w; it must lie on a file system with locks", d.setting, d.root, err)
	}
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("lock %s directory: %w", d.setting, d.Explain(err))
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return fmt.Errorf("lock %s directory: %w", d.setting, d.Explain(err))
	}
	return d.sweep()
}

// owner returns the process ID that the holder of the lock wrote into it.
func owner(f File) string {
	b, _ := io.ReadAll(io.NewSectionReader(f, 0, 32)) // a hint for a human; the lock itself does not depend on it
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return "unknown"
	}
	return strconv.Itoa(pid)
}

// sweep removes the temporary files of writes that never ended.
func (d *Dir) sweep() error {
	if err := d.sweepBelow(d.root); err != nil {
		return fmt.Errorf("remove leftovers: %w", d.Explain(err))
	}
	return nil
}

func (d *Dir) sweepBelow(dir string) error {
	entries, err := d.fs.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			err = d.sweepBelow(path)
		case strings.HasPrefix(e.Name(), tempMark):
			err = d.fs.Remove(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
