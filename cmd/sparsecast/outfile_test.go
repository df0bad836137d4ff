package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOutputsThatARenameWouldTake tries every kind of file as an output. None is opened, written or replaced here, so
// that a device of this machine may be among them.
func TestOutputsThatARenameWouldTake(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	ln, err := net.Listen("unix", in("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for _, err := range []error{
		os.Mkdir(in("dir"), 0o700), syscall.Mkfifo(in("pipe"), 0o600), os.WriteFile(in("file"), nil, 0o600),
		os.Symlink("dir", in("to_dir")), os.Symlink(os.DevNull, in("to_null")), os.Symlink("/proc/self/fd/1", in("to_stream")),
		os.Symlink("file", in("to_file")), os.Symlink("nowhere", in("to_nothing")), os.Symlink("loop", in("loop")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		in("dir"): "is a directory: name a file in it", in("to_dir"): "is a directory: name a file in it", dir + "/": "name a file in it",
		in("pipe"): "is a named pipe", in("socket"): "is a socket", in("to_null"): "is a device", os.DevNull: "is a device",
		in("to_stream"): "is a stream", "-": "name a file", in("loop"): "name another file",
		in("absent/x"): "make it first", in("file/x"): "is no directory",
		in("file"): "", in("to_file"): "", in("to_nothing"): "", in("new"): "",
	} {
		if err := checkOut(path); (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path)) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}
