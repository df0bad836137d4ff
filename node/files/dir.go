package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
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
	root string // absolute
}

// Open returns the directory at root and makes it when it is absent.
func Open(root string) (*Dir, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open data directory %s: %w", root, err)
	}
	if err := os.MkdirAll(abs, dirMode); err != nil {
		return nil, fmt.Errorf("make data directory: %w", explain(err))
	}
	if err := SyncDir(filepath.Dir(abs)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("make data directory: %w", explain(err)) // an unreadable parent was not made by us
	}
	return &Dir{root: abs}, nil
}

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
	f, info, err := OpenRegular(d.Path(name))
	if err != nil {
		return nil, explain(err)
	}
	defer f.Close()
	if info.Size() > MaxFile {
		return nil, fmt.Errorf("read %s: %d bytes, at most %d", f.Name(), info.Size(), MaxFile)
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fmt.Errorf("read %s: changed while it was read: %w", f.Name(), err)
	}
	return data, nil
}

// Remove deletes name; it is no error when name is absent.
func (d *Dir) Remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := os.Remove(d.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return explain(err)
	}
	return nil
}

// List returns the sorted names of the files that lie directly in dir, without their directory;
// "." is the root. It returns none when dir is absent.
func (d *Dir) List(dir string) ([]string, error) {
	if dir != "." {
		if err := checkName(dir); err != nil {
			return nil, err
		}
	}
	entries, err := os.ReadDir(d.Path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, explain(err)
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
