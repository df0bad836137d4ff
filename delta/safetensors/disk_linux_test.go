package safetensors

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sparsecast/sparsecast/delta/needs"
	"golang.org/x/sys/unix"
)

// big is a checkpoint larger than the limits in these tests.
var big = []Tensor{{"a", "U8", []uint64{8 << 20}, 8 << 20}}

// TestFileSizeLimit runs itself again under a limit on the size of files, which needs no privilege.
func TestFileSizeLimit(t *testing.T) {
	const key = "SAFETENSORS_LIMITED_DIR"
	dir := os.Getenv(key)
	if dir == "" {
		dir = t.TempDir()
		cmd := exec.Command(os.Args[0], "-test.run=^TestFileSizeLimit$")
		cmd.Env = append(os.Environ(), key+"="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		wantFiles(t, dir, "x")
		return
	}
	signal.Ignore(syscall.SIGXFSZ) // ask for the error and not for the end
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	path := put(t, dir, "x", []byte("old"))
	_, err := Create(path, big, nil)
	wantError(t, err, path, "reserve")
	if !errors.Is(err, unix.EFBIG) {
		t.Errorf("cause lost: %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "old" {
		t.Errorf("the path holds %q", b)
	}
}

// TestFullDisk shows that a disk without room is noticed by Create and left as it was.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	needs.Met(t, "to run as root, to mount a small disk", unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"))
	defer unix.Unmount(dir, 0)
	_, err := Create(filepath.Join(dir, "x"), big, nil)
	wantError(t, err, "reserve 8388", "no space left")
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("cause lost: %v", err)
	}
	wantFiles(t, dir)
}

// TestDiskIsTakenAtOnce shows that Create leaves no hole that could fail to be filled later.
func TestDiskIsTakenAtOnce(t *testing.T) {
	dir := t.TempDir()
	probe, err := os.Create(filepath.Join(dir, "probe"))
	if err != nil {
		t.Fatal(err)
	}
	defer probe.Close()
	needs.Met(t, "a file system that can reserve space", unix.Fallocate(int(probe.Fd()), 0, 0, 4096))
	w, err := Create(filepath.Join(dir, "x"), big, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	info, err := w.file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if taken := info.Sys().(*syscall.Stat_t).Blocks * 512; taken < 8<<20 {
		t.Errorf("%d of %d bytes taken", taken, info.Size())
	}
}

// TestLiveWriterIsLeftAlone and its leftover: the lock of a dead process is gone, that of a live one holds.
func TestLiveWriterIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	w, err := Create(path, []Tensor{{"a", "U8", nil, 1}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Create(path, nil, nil)
	wantError(t, err, "x.partial", "another writer")
	w.file.Close() // as the system does for a process that dies
	wantFiles(t, dir, "x.partial")
	save(t, path, big, [][]byte{{1}}, nil)
	wantFiles(t, dir, "x")
	if got := mustOpen(t, path).Tensors()[0].Size; got != 8<<20 {
		t.Errorf("the path holds a tensor of %d bytes", got)
	}
}
