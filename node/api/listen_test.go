package api

import (
	"net"
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
