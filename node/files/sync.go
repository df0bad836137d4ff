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
	var g errgroup.Group
	g.SetLimit(syncers)
	for _, name := range names {
		if err := checkName(name); err != nil {
			return errors.Join(err, g.Wait())
		}
		g.Go(func() error { return d.syncFile(name) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return d.syncDirs(names...)
}

func (d *Dir) syncFile(name string) error {
	f, err := os.OpenFile(d.Path(name), os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe fails below rather than wait here
	if err != nil {
		return fmt.Errorf("sync: %w", explain(err))
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync: %w", errors.Join(explain(err), os.Remove(f.Name())))
	}
	return nil
}

// syncDirs makes the entries of names durable. Directories above may be new as well, so it goes up to the root.
func (d *Dir) syncDirs(names ...string) error {
	dirs := make(map[string]bool)
	for _, name := range names {
		for dir := path.Dir(name); !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	var g errgroup.Group
	g.SetLimit(syncers)
	for dir := range dirs {
		g.Go(func() error { return SyncDir(d.Path(dir)) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("sync directory: %w", explain(err))
	}
	return nil
}

// SyncDir makes the entries of the directory at path durable.
func SyncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
