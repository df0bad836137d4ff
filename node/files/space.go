package files

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Free returns how many bytes an ordinary user may still write to the file system that holds path.
func Free(path string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", path, err)
	}
	return st.Bavail * uint64(st.Bsize), nil
}

// Free returns how many bytes may still be written to the file system of the directory.
func (d *Dir) Free() (uint64, error) { return d.fs.Free(d.root) }

// MakeRoom says what a user can do where space is short.
func (d *Dir) MakeRoom() string {
	return fmt.Sprintf("free some space there, or set %s: to a larger disk", d.setting)
}

// explained is an error of the file system with what a user can do about it.
type explained struct {
	err error
	fix string
}

func (e *explained) Error() string { return e.err.Error() + ": " + e.fix }

func (e *explained) Unwrap() error { return e.err }

// Explain adds to an error of the FS under d, which names the path, what a user can do about it; once, so that whoever
// knows the directory may come first. The other methods have done so.
func (d *Dir) Explain(err error) error {
	var before *explained
	if errors.As(err, &before) {
		return err
	}
	var fix string
	switch {
	case IsFull(err):
		fix = d.MakeRoom()
	case errors.Is(err, unix.EROFS):
		fix = fmt.Sprintf("mount it for writing, or set %s: to another directory", d.setting)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		fix = "it must belong to the user who runs the node"
	default:
		return err
	}
	return &explained{err, fix}
}

// IsFull tells whether an error says that there is no room left.
func IsFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
