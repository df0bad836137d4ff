package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// diskUse returns what the files below dir take on the disk, and how many there are. Files that go meanwhile do not
// count.
func diskUse(t *testing.T, dir string) (bytes int64, count int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return ignoreAbsent(err)
		}
		info, err := e.Info()
		if err != nil {
			return ignoreAbsent(err)
		}
		bytes += info.Sys().(*syscall.Stat_t).Blocks * 512
		count++
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return bytes, count
}

func ignoreAbsent(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// processUse returns how many bytes of memory a node has in use, and how many open files; ok is false where the system
// does not tell.
func processUse(t *testing.T, h *host) (memory int64, files int, ok bool) {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d", h.cmd.Process.Pid)
	status, err := os.ReadFile(proc + "/status")
	if errors.Is(err, fs.ErrNotExist) && runtime.GOOS != "linux" {
		return 0, 0, false
	}
	open, e := os.ReadDir(proc + "/fd")
	if err := errors.Join(err, e); err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(status), "VmRSS:")
	if _, err := fmt.Sscanf(text, "%d kB", &memory); err != nil {
		t.Fatalf("memory of %s: %v", h.name, err)
	}
	return memory << 10, len(open), true
}
