package files

import (
	"os"
	"strings"
	"testing"
)

func TestWriteDurable(t *testing.T) {
	d := open(t)
	for _, want := range []string{"first", "", "third"} {
		if err := d.WriteDurable("a/b/c", []byte(want)); err != nil {
			t.Fatal(err)
		}
		if got, err := d.ReadFile("a/b/c"); err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

func TestFailedWriteLeavesNothing(t *testing.T) {
	d := open(t)
	if err := os.MkdirAll(d.Path("x/full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.Path("x/full/y"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(d.Path("x/empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x/full", "x/empty"} {
		for what, err := range map[string]error{
			"write": d.WriteFile(name, []byte("1")), "durable": d.WriteDurable(name, []byte("1")), "link": d.Symlink("/z", name),
		} {
			if err == nil || !strings.Contains(err.Error(), d.Path(name)+" is a directory") || !strings.Contains(err.Error(), "move it away") {
				t.Errorf("%s %s: got %v, want what is in the way", what, name, err)
			}
		}
	}
	if left, err := os.ReadDir(d.Path("x")); err != nil || len(left) != 2 {
		t.Errorf("left behind %v, %v", left, err)
	}
	if err := d.WriteFile("large", make([]byte, MaxFile+1)); err == nil {
		t.Error("wrote a file that ReadFile would refuse")
	}
}

func TestSymlinkReplaces(t *testing.T) {
	d := open(t)
	if err := d.WriteFile("current", []byte("a file")); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"/slots/0", "/slots/1", "relative"} {
		if err := d.Symlink(target, "current"); err != nil {
			t.Fatal(err)
		}
		if got, err := os.Readlink(d.Path("current")); err != nil || got != target {
			t.Errorf("got %q, %v, want %q", got, err, target)
		}
	}
	if left, err := os.ReadDir(d.root); err != nil || len(left) != 1 {
		t.Errorf("left behind %v, %v", left, err)
	}
}
