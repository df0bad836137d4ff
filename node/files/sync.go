package files

import (
	"errors"
	"fmt"
	"os"
	"path"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// syncers is how many fsyncs run at a time; file systems with a journal commit neighbours together.
const syncers = 8

// Sync makes the named files durable: their bytes, and their names in every directory up to the root, each directory
// once. A file whose fsync fails is removed, since its content can no longer be trusted.
func (d *Dir) Sync(names ...string) error {
	for _, name := range names {
		if err := checkName(name); err != nil {
			return err
		}
	}
	if err := atOnce(names, d.syncFile); err != nil {
		return err
	}
	return d.syncDirs(names...)
}

// atOnce calls sync for every name, several at a time, and returns an error of one that failed.
func atOnce(names []string, sync func(name string) error) error {
	var g errgroup.Group
	g.SetLimit(syncers)
	for _, name := range names {
		g.Go(func() error { return sync(name) })
	}
	return g.Wait()
}

func (d *Dir) syncFile(name string) error {
	path := d.Path(name)
	f, err := d.fs.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe fails below rather than wait here
	if err != nil {
		return fmt.Errorf("sync: %w", d.Explain(err))
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync: %w", errors.Join(d.Explain(err), d.fs.Remove(path)))
	}
	return nil
}

// syncDirs makes the entries of names durable. Directories above may be new as well, so it goes up to the root.
func (d *Dir) syncDirs(names ...string) error {
	var dirs []string
	seen := make(map[string]bool)
	for _, name := range names {
		for dir := path.Dir(name); !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			dirs = append(dirs, dir)
		}
	}
	if err := atOnce(dirs, func(dir string) error { return d.fs.SyncDir(d.Path(dir)) }); err != nil {
		return fmt.Errorf("sync directory: %w", d.Explain(err))
	}
	return nil
}
