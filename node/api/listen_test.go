package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseAddress(t *testing.T) {
	for _, good := range []string{"unix:/run/a.sock", "unix:rel.sock", "127.0.0.1:80", "127.9.9.9:1", "[::1]:0", "localhost:9"} {
		a, err := ParseAddress(good)
		if err != nil || a.String() != good {
			t.Errorf("%s: got %v, %v", good, a, err)
		}
	}
	for _, bad := range []string{"", "unix:", "0.0.0.0:80", ":80", "10.0.0.1:80", "example.org:80", "[::]:1", "127.0.0.1", "http://127.0.0.1:1"} {
		if a, err := ParseAddress(bad); err == nil {
			t.Errorf("%q: accepted as %v", bad, a)
		}
	}
	_, err := ParseAddress("unix:/" + strings.Repeat("x", maxSocketPath))
	if err == nil || !strings.Contains(err.Error(), "set api: to a shorter path") {
		t.Errorf("long path: got %v", err)
	}
}

func TestSocketIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ln, err := Listen("unix:"+path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want mode 0600", info, err)
	}
	if _, err := Listen("unix:"+path, ""); err == nil || !strings.Contains(err.Error(), "another node answers") {
		t.Errorf("second listener: got %v", err)
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false) // as a process that was killed leaves it
	old.Close()
	ln, err := Listen("unix:"+path, "")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
}

// TestOnlyTheOwnSocketIsRemoved starts a second node where the directory of the first was removed and made again, and
// then stops the first.
func TestOnlyTheOwnSocketIsRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var both [2]*Listener
	for i := range both {
		if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
			t.Fatal(err)
		}
		ln, err := Listen("unix:"+filepath.Join(dir, "s"), "")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		both[i] = ln
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := both[0].Serve(ctx, http.NotFoundHandler()); err != nil {
		t.Error(err)
	}
	both[0].Close() // a second time, as the owner may
	conn, err := net.Dial("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatalf("the second node's socket: %v", err)
	}
	conn.Close()
	if err := both[1].Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind %v, %v", left, err)
	}
}

// TestCloseWithoutTheSocket removes the socket of a node, or puts something else there, and then stops the node.
func TestCloseWithoutTheSocket(t *testing.T) {
	for _, text := range []string{"", "a file"} {
		path := filepath.Join(t.TempDir(), "s")
		ln, err := Listen("unix:"+path, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if text != "" {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := ln.Close(); err != nil {
			t.Error(err)
		}
		if b, err := os.ReadFile(path); (err == nil) != (text != "") || string(b) != text {
			t.Errorf("%q became %q, %v", text, b, err)
		}
	}
}

func TestOtherFilesAreNotReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen("unix:"+path, ""); err == nil {
		t.Error("listened on a file")
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "precious" {
		t.Errorf("the file became %q, %v", b, err)
	}
}

func TestTokenFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "deep", "api.token")
	made, err := ensureToken(file)
	if err != nil || len(made) < 16 {
		t.Fatalf("got %q, %v", made, err)
	}
	if again, err := ensureToken(file); err != nil || again != made {
		t.Errorf("again: got %q, %v, want the same token", again, err)
	}
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
	}{
		"short": {"abc\n", 0o600}, "empty": {"", 0o600}, "open": {made, 0o640}, "large": {strings.Repeat("x", maxTokenFile+1), 0o600},
	} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		if token, err := ensureToken(file); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: got %q, %v, want an error with the path", name, token, err)
		}
	}
}
