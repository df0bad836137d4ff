package files

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFree(t *testing.T) {
	if n, err := Free("/proc"); err != nil || n != 0 {
		t.Errorf("/proc: got %d, %v, want no space", n, err)
	}
	if n, err := Free(t.TempDir()); err != nil || n == 0 {
		t.Errorf("temporary directory: got %d, %v", n, err)
	}
	absent := filepath.Join(t.TempDir(), "absent")
	if _, err := Free(absent); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), absent) {
		t.Errorf("got %v, want fs.ErrNotExist with the path", err)
	}
}

func TestExplain(t *testing.T) {
	for errno, hint := range map[unix.Errno]string{
		unix.ENOSPC: "larger disk", unix.EDQUOT: "larger disk", unix.EROFS: "for writing", unix.EACCES: "belong to", unix.EPERM: "belong to",
	} {
		err := explain(&os.PathError{Op: "write", Path: "/data/x", Err: errno})
		if !errors.Is(err, errno) || !strings.Contains(err.Error(), "/data/x") || !strings.Contains(err.Error(), hint) {
			t.Errorf("%v: got %v, want the path and %q", errno, err, hint)
		}
	}
	if err := explain(unix.EIO); err != unix.EIO {
		t.Errorf("got %v, want it unchanged", err)
	}
}
