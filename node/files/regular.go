package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/sparsecast/sparsecast/delta/safetensors"
)

// ErrNotRegular says that something is no regular file, and was not opened.
var ErrNotRegular = errors.New("want a regular file")

// OpenRegular opens a regular file for reading, following symlinks. Anything else is refused with ErrNotRegular: a
// named pipe would make the caller wait for whoever writes to it, and a device may never end.
func OpenRegular(d safetensors.Disk, path string) (File, fs.FileInfo, error) {
	info, err := d.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if err := wantRegular(path, info); err != nil {
		return nil, nil, err // before an open that a device might act on
	}
	f, err := d.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil { // again: the name may have been given to another file in between
		err = wantRegular(path, info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

func wantRegular(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return fmt.Errorf("%s is a %s, %w", path, Kind(info.Mode()), ErrNotRegular)
}

// Kind names what a mode says of a file.
func Kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeSymlink != 0:
		return "symlink"
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	case mode.IsRegular():
		return "regular file"
	}
	return "file of an unknown kind"
}
