package files

import (
	"errors"
	"fmt"
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
	d := &Dir{setting: "data"}
	for errno, hint := range map[unix.Errno]string{
		unix.ENOSPC: "larger disk", unix.EDQUOT: "larger disk", unix.EROFS: "for writing", unix.EACCES: "belong to", unix.EPERM: "belong to",
	} {
		err := d.Explain(&os.PathError{Op: "write", Path: "/data/x", Err: errno})
		if !errors.Is(err, errno) || !strings.Contains(err.Error(), "/data/x") || !strings.Contains(err.Error(), hint) {
			t.Errorf("%v: got %v, want the path and %q", errno, err, hint)
		}
	}
	if err := d.Explain(unix.EIO); err != unix.EIO {
		t.Errorf("got %v, want it unchanged", err)
	}
}

// Whoever knows the directory comes first, and is not contradicted.
func TestExplainOnce(t *testing.T) {
	data, slots := &Dir{setting: "data"}, &Dir{setting: "slots_dir"}
	first := data.Explain(unix.ENOSPC)
	again := slots.Explain(fmt.Errorf("write: %w", errors.Join(first, unix.EROFS)))
	if s := again.Error(); strings.Count(s, "free some") != 1 || !strings.Contains(s, "set data:") || strings.Contains(s, "slots_dir") {
		t.Errorf("got %q", s)
	}
	if s := slots.Explain(unix.EROFS).Error(); !strings.Contains(s, "slots_dir:") || strings.Contains(s, "data") {
		t.Errorf("got %q, want it to name slots_dir", s)
	}
}
