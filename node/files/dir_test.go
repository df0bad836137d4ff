package files

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func open(t *testing.T) *Dir {
	t.Helper()
	d, err := Open(OS{}, filepath.Join(t.TempDir(), "a", "data"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOpenIsPrivate(t *testing.T) {
	d := open(t)
	if err := d.WriteFile("sub/x", []byte("1")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{".": 0o700, "sub": 0o700, "sub/x": 0o600} {
		info, err := os.Stat(d.Path(name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v, want %v", name, info.Mode().Perm(), err, want)
		}
	}
}

func TestNamesStayInside(t *testing.T) {
	d := open(t)
	for _, name := range []string{"", ".", "..", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "./a", "a/../b", ".lock", "a/.tmp-1", "a\x00b", `a\b`} {
		_, readErr := d.ReadFile(name)
		_, sizeErr := d.Size(name)
		for what, err := range map[string]error{
			"read": readErr, "size": sizeErr, "write": d.WriteFile(name, nil), "durable": d.WriteDurable(name, nil),
			"sync": d.Sync(name), "remove": d.Remove(name), "link": d.Symlink("/x", name),
		} {
			if err == nil || !strings.Contains(err.Error(), "file name") {
				t.Errorf("%s %q: got %v, want a refusal", what, name, err)
			}
		}
		if p := d.Path(name); p != d.root && !strings.HasPrefix(p, d.root+"/") {
			t.Errorf("path of %q leaves the directory: %s", name, p)
		}
	}
	if left, err := os.ReadDir(d.root); err != nil || len(left) != 0 {
		t.Errorf("refused names left %v, %v", left, err)
	}
}

func TestAbsent(t *testing.T) {
	d := open(t)
	if _, err := d.ReadFile("x/y"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read: got %v, want fs.ErrNotExist", err)
	}
	if _, err := d.Size("x/y"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("size: got %v, want fs.ErrNotExist", err)
	}
	if err := d.Remove("x/y"); err != nil {
		t.Errorf("remove: %v", err)
	}
	if names, err := d.List("x"); err != nil || len(names) != 0 {
		t.Errorf("list: got %v, %v", names, err)
	}
	if err := d.Sync("x/y"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("sync: got %v, want fs.ErrNotExist", err)
	}
}

func TestReadFileIsBounded(t *testing.T) {
	d := open(t)
	if err := d.WriteFile("large", nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(d.Path("large"), MaxFile+1); err != nil {
		t.Fatal(err)
	}
	if _, err := d.ReadFile("large"); err == nil || !strings.Contains(err.Error(), d.Path("large")) {
		t.Errorf("got %v, want an error with the path", err)
	}
	if err := os.Mkdir(d.Path("dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := d.ReadFile("dir"); err == nil {
		t.Error("read a directory")
	}
}

func TestErrorsNameThePath(t *testing.T) {
	d := open(t)
	if err := d.WriteFile("x", nil); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"write": d.WriteFile("x/y", nil), "link": d.Symlink("/z", "x/y"), "remove": d.Remove("x/y"),
	} {
		if err == nil || !strings.Contains(err.Error(), d.Path("x")) {
			t.Errorf("%s: got %v, want an error with the path", what, err)
		}
	}
}

// TestDirIsAMap drives a directory and a map with the same calls.
func TestDirIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		root, err := os.MkdirTemp("", "files")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(root)
		d, err := Open(OS{}, root)
		if err != nil {
			t.Fatal(err)
		}
		model := make(map[string]string)
		names := rapid.SampledFrom([]string{"a", "b", "d/a", "d/b", "d/e/a"})
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				name, data := names.Draw(t, "name"), rapid.String().Draw(t, "data")
				if err := d.WriteFile(name, []byte(data)); err != nil {
					t.Fatal(err)
				}
				model[name] = data
			},
			"remove": func(t *rapid.T) {
				name := names.Draw(t, "name")
				if err := d.Remove(name); err != nil {
					t.Fatal(err)
				}
				delete(model, name)
			},
			"": func(t *rapid.T) { compare(t, d, model) },
		})
	})
}

func compare(t *rapid.T, d *Dir, model map[string]string) {
	for _, dir := range []string{".", "d", "d/e"} {
		var want []string
		for name := range model {
			if path.Dir(name) == dir {
				want = append(want, path.Base(name))
			}
		}
		slices.Sort(want)
		if got, err := d.List(dir); err != nil || !slices.Equal(got, want) {
			t.Fatalf("list %s: got %v, %v, want %v", dir, got, err, want)
		}
	}
	for name, want := range model {
		if got, err := d.ReadFile(name); err != nil || string(got) != want {
			t.Fatalf("read %s: got %q, %v, want %q", name, got, err, want)
		}
	}
}
