package files

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestLockExcludes(t *testing.T) {
	d := open(t)
	unlock, err := d.Lock()
	if err != nil {
		t.Fatal(err)
	}
	other, err := Open(OS{}, d.root)
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.Lock()
	if err == nil {
		t.Fatal("locked twice")
	}
	for _, want := range []string{d.root, "process " + strconv.Itoa(os.Getpid()), "data:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
	unlock()
	unlock() // harmless
	again, err := other.Lock()
	if err != nil {
		t.Fatalf("after unlock: %v", err)
	}
	again()
}

func TestLockRemovesLeftovers(t *testing.T) {
	d := open(t)
	if err := d.WriteFile("a/b", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".tmp-1", "a/.tmp-2"} {
		if err := os.WriteFile(d.Path(name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := d.List("a"); err != nil || len(names) != 1 {
		t.Errorf("list before: got %v, %v", names, err)
	}
	unlock, err := d.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	for _, name := range []string{".tmp-1", "a/.tmp-2"} {
		if _, err := os.Lstat(d.Path(name)); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
	if got, err := d.ReadFile("a/b"); err != nil || string(got) != "kept" {
		t.Errorf("got %q, %v", got, err)
	}
}
