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

// explain adds to an error of the file system, which names the path, what a user can do about it.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("%w: free some space there, or set data: to a larger disk", err)
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w: mount it for writing, or set data: to another directory", err)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w: it must belong to the user who runs the node", err)
	}
	return err
}
