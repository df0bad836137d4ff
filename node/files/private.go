package files

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// OpenPrivate is Open for a directory that may lie where everybody can write, as in /dev/shm, and that a setting of the
// configuration names. What is there already must be a directory of this user that nobody else can enter: weights are
// read from it, and somebody else might have made it first.
func OpenPrivate(fsys FS, root, setting string) (*Dir, error) {
	d, err := openFor(fsys, root, setting)
	if err != nil {
		return nil, err
	}
	info, err := fsys.Lstat(d.root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, d.Explain(err))
	}
	if err := wantPrivate(d.root, info); err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	return d, nil
}

func wantPrivate(path string, info fs.FileInfo) error {
	if !info.IsDir() {
		return fmt.Errorf("%s is a %s: name a directory, by its own path", path, Kind(info.Mode()))
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("others can enter %s (mode %04o): chmod 700 it, or name a directory that does not exist yet", path, info.Mode().Perm())
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d: name another directory", path, s.Uid)
	}
	return nil
}

// Inside tells whether d and other are one directory, or one lies in the other.
func (d *Dir) Inside(other *Dir) bool {
	for _, pair := range [2][2]string{{d.root, other.root}, {other.root, d.root}} {
		if rel, err := filepath.Rel(pair[0], pair[1]); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}
