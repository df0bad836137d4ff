package files

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// oddFiles makes one of every kind of file that nobody should read, and tells what each is.
func oddFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	in := func(name string) string { return filepath.Join(dir, name) }
	ln, err := net.Listen("unix", in("socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	for _, err := range []error{
		syscall.Mkfifo(in("pipe"), 0o600), os.Mkdir(in("dir"), 0o700),
		os.Symlink("pipe", in("link")), os.Symlink(os.DevNull, in("null")), os.Symlink("/dev/zero", in("zero")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return map[string]string{
		"pipe": "named pipe", "link": "named pipe", "dir": "directory", "null": "device", "zero": "device",
		"socket": "socket",
	}
}

// TestOnlyRegularFilesAreRead would never end if an open waited for the other end of the pipe.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	d := open(t)
	for name, kind := range oddFiles(t, d.root) {
		if f, _, err := OpenRegular(OS{}, d.Path(name)); err == nil {
			f.Close()
			t.Errorf("%s: opened", name)
		} else if !strings.Contains(err.Error(), d.Path(name)) || !strings.Contains(err.Error(), kind) {
			t.Errorf("%s: got %v, want the path and %q", name, err, kind)
		}
		if _, err := d.ReadFile(name); err == nil || !strings.Contains(err.Error(), d.Path(name)) {
			t.Errorf("read %s: got %v, want an error with the path", name, err)
		}
	}
	if err := d.Sync("pipe"); err == nil {
		t.Error("synced a pipe")
	}
	if err := os.Symlink("real", d.Path("good")); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteFile("real", []byte("text")); err != nil {
		t.Fatal(err)
	}
	if b, err := d.ReadFile("good"); err != nil || string(b) != "text" {
		t.Errorf("through a symlink: got %q, %v", b, err)
	}
}
