package files

import (
	"os"
	"testing"
)

func TestSync(t *testing.T) {
	d := open(t)
	names := []string{"a", "b/a", "b/b", "b/c/d/e"}
	for _, name := range names {
		if err := d.WriteFile(name, []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Sync(names...); err != nil {
		t.Fatal(err)
	}
	if err := d.Sync(); err != nil {
		t.Errorf("nothing to sync: %v", err)
	}
}

// A device takes no fsync, and stands here for a file whose disk failed.
func TestFailedSyncCondemnsTheFile(t *testing.T) {
	d := open(t)
	if err := d.WriteFile("good", nil); err != nil {
		t.Fatal(err)
	}
	if err := d.Symlink(os.DevNull, "bad"); err != nil {
		t.Fatal(err)
	}
	if err := d.Sync("good", "bad"); err == nil {
		t.Fatal("a failed fsync passed")
	}
	if names, err := d.List("."); err != nil || len(names) != 1 || names[0] != "good" {
		t.Errorf("got %v, %v, want only the good file", names, err)
	}
}
