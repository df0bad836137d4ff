package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// MaxFile is the most bytes that ReadFile returns; small records and blocks live here, never weights.
const MaxFile = 64 << 20

const (
	dirMode  = 0o700
	fileMode = 0o600
	tempMark = ".tmp-"
)

// Dir is a directory of durable files. Its methods are safe for concurrent use.
type Dir struct {
	fs      FS
	root    string // absolute
	setting string // of the configuration that names it
}

// Open returns the directory at root and makes it when it is absent.
func Open(fsys FS, root string) (*Dir, error) { return openFor(fsys, root, "data") }

// Sub returns a directory in d and makes it when it is absent.
func (d *Dir) Sub(name string) (*Dir, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	return openFor(d.fs, d.Path(name), d.setting)
}

func openFor(fsys FS, root, setting string) (*Dir, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open %s directory %s: %w", setting, root, err)
	}
	d := &Dir{fs: fsys, root: abs, setting: setting}
	if err := fsys.MkdirAll(abs, dirMode); err != nil {
		return nil, fmt.Errorf("make %s directory: %w", setting, d.Explain(err))
	}
	if err := syncAbove(fsys, abs); err != nil {
		return nil, fmt.Errorf("make %s directory: %w", setting, d.Explain(err))
	}
	return d, nil
}

// syncAbove makes the names of all directories on a path durable. This process may have made any of them, or one that
// ended before it got here.
func syncAbove(fsys FS, path string) error {
	for path != filepath.Dir(path) {
		path = filepath.Dir(path)
		if err := fsys.SyncDir(path); err != nil && !foreign(err) {
			return err
		}
	}
	return nil
}

// foreign tells whether a sync failed on a directory that was not made by us: one that we may not read, or one that
// cannot be synced at all, as where an automounter puts its mounts.
func foreign(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported)
}

// FS returns the file system that the directory lies on, for files elsewhere.
func (d *Dir) FS() FS { return d.fs }

// Path returns where name lies on this machine, for programs that open it themselves.
// A name that the other methods refuse leads to a path inside the directory all the same.
func (d *Dir) Path(name string) string {
	return filepath.Join(d.root, filepath.FromSlash(path.Join("/", name)))
}

// ReadFile returns the content of name, at most MaxFile bytes. Absence is fs.ErrNotExist.
func (d *Dir) ReadFile(name string) ([]byte, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	f, info, err := OpenRegular(d.fs, d.Path(name))
	if err != nil {
		return nil, d.Explain(err)
	}
	defer f.Close()
	if info.Size() > MaxFile {
		return nil, fmt.Errorf("read %s: %d bytes, at most %d", d.Path(name), info.Size(), MaxFile)
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, info.Size()), data); err != nil {
		return nil, fmt.Errorf("read %s: changed while it was read: %w", d.Path(name), err)
	}
	return data, nil
}

// Remove deletes name; it is no error when name is absent.
func (d *Dir) Remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := d.fs.Remove(d.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d.Explain(err)
	}
	return nil
}

// RemoveDurable is Remove for any number of names, which are absent after a crash as well.
func (d *Dir) RemoveDurable(names ...string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, d.Remove(name))
	}
	if err := errors.Join(errs...); err != nil || len(names) == 0 {
		return err
	}
	return d.syncDirs(names...)
}

// Size returns the bytes of name. Absence is fs.ErrNotExist.
func (d *Dir) Size(name string) (int64, error) {
	if err := checkName(name); err != nil {
		return 0, err
	}
	info, err := d.fs.Stat(d.Path(name))
	if err != nil {
		return 0, d.Explain(err)
	}
	return info.Size(), nil
}

// List returns the sorted names of the files that lie directly in dir, without their directory;
// "." is the root. It returns none when dir is absent.
func (d *Dir) List(dir string) ([]string, error) {
	if dir != "." {
		if err := checkName(dir); err != nil {
			return nil, err
		}
	}
	entries, err := d.fs.ReadDir(d.Path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, d.Explain(err)
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.IsDir() || strings.HasPrefix(e.Name(), ".") })
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// checkName refuses names that could leave the directory, that have two spellings, or that are the package's own.
func checkName(name string) error {
	if !filepath.IsLocal(name) || path.Clean(name) != name || strings.ContainsAny(name, "\x00\\") {
		return fmt.Errorf("file name %q: want a clean, slash-separated path inside the data directory", name)
	}
	for element := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(element, ".") {
			return fmt.Errorf("file name %q: names that begin with a dot are reserved", name)
		}
	}
	return nil
}
