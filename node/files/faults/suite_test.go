package faults

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/delta/safetensors"
	"github.com/sparsecast/sparsecast/node/files"
	"pgregory.net/rapid"
)

// faces returns every file system that must behave like the others, each with an empty directory on it.
func faces(t *testing.T) map[string]func(t *testing.T) (files.FS, string) {
	return map[string]func(t *testing.T) (files.FS, string){
		"real": func(t *testing.T) (files.FS, string) { return files.OS{}, t.TempDir() },
		"memory": func(t *testing.T) (files.FS, string) {
			m := NewDisk(time.Now).Mount()
			must(t, m.MkdirAll("/tmp/empty", 0o755))
			return m, "/tmp/empty"
		},
		"real, wrapped by one that never fails": func(t *testing.T) (files.FS, string) {
			return &Failing{On: files.OS{}}, t.TempDir()
		},
	}
}

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// want fails unless err is target, and names the path as users need it.
func want(t *testing.T, err, target error, path string) {
	t.Helper()
	if !errors.Is(err, target) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want %v with %s", err, target, path)
	}
}

// write makes a new file.
func write(t rapid.TB, fsys files.FS, path, text string) {
	t.Helper()
	f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	must(t, err)
	_, err = f.WriteAt([]byte(text), 0)
	must(t, err)
	must(t, f.Close())
}

// read returns the content of a file, or the error as text.
func read(t rapid.TB, fsys files.FS, path string) string {
	t.Helper()
	f, info, err := files.OpenRegular(fsys, path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, info.Size()))
	must(t, err)
	return string(b)
}

// suite is what all faces have in common.
var suite = map[string]func(t *testing.T, fsys files.FS, dir string){
	"reading and writing": func(t *testing.T, fsys files.FS, dir string) {
		path := dir + "/x"
		f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		must(t, err)
		for _, w := range []struct {
			text string
			off  int64
		}{{"world", 6}, {"hello", 0}} {
			n, err := f.WriteAt([]byte(w.text), w.off)
			if n != len(w.text) || err != nil {
				t.Errorf("wrote %d, %v", n, err)
			}
		}
		p := make([]byte, 20)
		if n, err := f.ReadAt(p, 0); n != 11 || err != io.EOF || string(p[:n]) != "hello\x00world" {
			t.Errorf("read %q, %v", p[:n], err)
		}
		if n, err := f.ReadAt(p[:2], 9); n != 2 || err != nil {
			t.Errorf("up to the end: %d, %v", n, err)
		}
		if n, err := f.ReadAt(p[:1], 11); n != 0 || err != io.EOF {
			t.Errorf("past the end: %d, %v", n, err)
		}
		must(t, f.Truncate(3))
		must(t, f.Truncate(6))
		must(t, f.Reserve(5))
		must(t, f.Sync())
		info, err := f.Stat()
		must(t, err)
		if info.Size() != 6 || info.Name() != "x" || info.Mode() != 0o644 {
			t.Errorf("size %d, name %s, mode %v", info.Size(), info.Name(), info.Mode())
		}
		if got := read(t, fsys, path); got != "hel\x00\x00\x00" {
			t.Errorf("holds %q", got)
		}
		must(t, f.Close())
		_, err = f.ReadAt(p, 0)
		want(t, err, os.ErrClosed, path)
		want(t, f.Close(), os.ErrClosed, path)
		f, err = fsys.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		must(t, err)
		defer f.Close()
		_, err = f.WriteAt(p, 0)
		want(t, err, syscall.EBADF, path)
	},
	"opening": func(t *testing.T, fsys files.FS, dir string) {
		_, err := fsys.OpenFile(dir+"/x", os.O_RDWR, 0)
		want(t, err, fs.ErrNotExist, dir+"/x")
		f, err := fsys.OpenFile(dir+"/x", os.O_RDWR|os.O_CREATE, 0o600)
		must(t, err)
		must(t, f.Close())
		f, err = fsys.OpenFile(dir+"/x", os.O_RDWR|os.O_CREATE, 0o600)
		must(t, err)
		must(t, f.Close())
		_, err = fsys.OpenFile(dir+"/x", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		want(t, err, fs.ErrExist, dir+"/x")
		_, err = fsys.OpenFile(dir+"/x/y", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		want(t, err, syscall.ENOTDIR, dir+"/x/y")
		_, err = fsys.OpenFile(dir+"/z/y", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		want(t, err, fs.ErrNotExist, dir+"/z/y")
		_, err = fsys.OpenFile(dir, os.O_RDWR, 0)
		want(t, err, syscall.EISDIR, dir)
		must(t, fsys.Symlink("nothing", dir+"/link"))
		_, err = fsys.OpenFile(dir+"/link", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		want(t, err, fs.ErrExist, dir+"/link")
	},
	"directories": func(t *testing.T, fsys files.FS, dir string) {
		must(t, fsys.MkdirAll(dir+"/a/b", 0o700))
		must(t, fsys.MkdirAll(dir+"/a/b", 0o700))
		for _, name := range []string{"a/2", "a/1"} {
			write(t, fsys, dir+"/"+name, "")
		}
		must(t, fsys.Symlink("b", dir+"/a/l"))
		entries, err := fsys.ReadDir(dir + "/a")
		must(t, err)
		var got []string
		for _, e := range entries {
			got = append(got, e.Name()+" "+e.Type().String())
		}
		if s := strings.Join(got, ", "); s != "1 ----------, 2 ----------, b d---------, l L---------" {
			t.Errorf("entries %s", s)
		}
		info, err := fsys.Stat(dir + "/a/l")
		must(t, err)
		if !info.IsDir() || info.Mode().Perm() != 0o700 {
			t.Errorf("through the link: %v", info.Mode())
		}
		_, err = fsys.ReadDir(dir + "/a/1")
		want(t, err, syscall.ENOTDIR, dir+"/a/1")
		_, err = fsys.ReadDir(dir + "/none")
		want(t, err, fs.ErrNotExist, dir+"/none")
		want(t, fsys.MkdirAll(dir+"/a/1", 0o700), syscall.ENOTDIR, dir+"/a/1")
		want(t, fsys.MkdirAll(dir+"/a/1/2", 0o700), syscall.ENOTDIR, dir+"/a/1")
		must(t, fsys.SyncDir(dir+"/a"))
		want(t, fsys.SyncDir(dir+"/none"), fs.ErrNotExist, dir+"/none")
	},
	"renaming": func(t *testing.T, fsys files.FS, dir string) {
		write(t, fsys, dir+"/x", "new")
		write(t, fsys, dir+"/y", "old")
		old, err := fsys.OpenFile(dir+"/y", os.O_RDONLY, 0)
		must(t, err)
		defer old.Close()
		before, err := fsys.Stat(dir + "/x")
		must(t, err)
		must(t, fsys.Rename(dir+"/x", dir+"/y"))
		after, err := fsys.Stat(dir + "/y")
		must(t, err)
		stat, err := old.Stat()
		must(t, err)
		if !fsys.SameFile(before, after) || fsys.SameFile(after, stat) {
			t.Error("the name leads to another file")
		}
		p := make([]byte, 3)
		if _, err := old.ReadAt(p, 0); err != nil || string(p) != "old" {
			t.Errorf("who had it open reads %q, %v", p, err)
		}
		if got := read(t, fsys, dir+"/y"); got != "new" {
			t.Errorf("holds %q", got)
		}
		want(t, fsys.Rename(dir+"/x", dir+"/z"), fs.ErrNotExist, dir+"/x")
		want(t, fsys.Rename(dir+"/y", dir+"/none/y"), fs.ErrNotExist, dir+"/y")
		must(t, fsys.MkdirAll(dir+"/d", 0o700))
		want(t, fsys.Rename(dir+"/y", dir+"/d"), fs.ErrExist, dir+"/d")
		must(t, fsys.Symlink("nothing", dir+"/l"))
		must(t, fsys.Rename(dir+"/y", dir+"/l"))
		must(t, fsys.Rename(dir+"/l", dir+"/d/y"))
		if got := read(t, fsys, dir+"/d/y"); got != "new" {
			t.Errorf("moved: holds %q", got)
		}
	},
	"removing": func(t *testing.T, fsys files.FS, dir string) {
		write(t, fsys, dir+"/x", "text")
		f, err := fsys.OpenFile(dir+"/x", os.O_RDWR, 0)
		must(t, err)
		defer f.Close()
		must(t, fsys.Remove(dir+"/x"))
		want(t, fsys.Remove(dir+"/x"), fs.ErrNotExist, dir+"/x")
		p := make([]byte, 4)
		if _, err := f.ReadAt(p, 0); err != nil || string(p) != "text" {
			t.Errorf("who had it open reads %q, %v", p, err)
		}
		must(t, fsys.MkdirAll(dir+"/a/b/c", 0o700))
		write(t, fsys, dir+"/a/b/x", "")
		write(t, fsys, dir+"/kept", "kept")
		must(t, fsys.Symlink(dir+"/kept", dir+"/a/b/l"))
		want(t, fsys.Remove(dir+"/a"), syscall.ENOTEMPTY, dir+"/a")
		must(t, fsys.Remove(dir+"/a/b/c"))
		must(t, fsys.RemoveAll(dir+"/a"))
		must(t, fsys.RemoveAll(dir+"/a"))
		must(t, fsys.RemoveAll(dir+"/a/b"))
		if got := read(t, fsys, dir+"/kept"); got != "kept" {
			t.Errorf("behind a symlink: %s", got)
		}
		if entries, err := fsys.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("left %v, %v", entries, err)
		}
	},
	"symlinks": func(t *testing.T, fsys files.FS, dir string) {
		must(t, fsys.MkdirAll(dir+"/blobs", 0o700))
		must(t, fsys.MkdirAll(dir+"/snapshots/1", 0o700))
		write(t, fsys, dir+"/blobs/x", "text")
		link := dir + "/snapshots/1/x"
		must(t, fsys.Symlink("../../blobs/x", link))
		must(t, fsys.Symlink(dir+"/snapshots", dir+"/s"))
		must(t, fsys.Symlink("loop", dir+"/loop"))
		if got := read(t, fsys, dir+"/s/1/x"); got != "text" {
			t.Errorf("reads %q", got)
		}
		base, err := fsys.Resolve(dir)
		must(t, err)
		if got, err := fsys.Resolve(dir + "/s/1/../1/x"); err != nil || got != base+"/blobs/x" {
			t.Errorf("resolves to %s, %v", got, err)
		}
		if got, err := fsys.Readlink(link); err != nil || got != "../../blobs/x" {
			t.Errorf("leads to %s, %v", got, err)
		}
		info, err := fsys.Lstat(link)
		must(t, err)
		if info.Mode().Type() != fs.ModeSymlink || info.Name() != "x" {
			t.Errorf("is %v, %s", info.Mode(), info.Name())
		}
		want(t, fsys.Symlink("y", link), fs.ErrExist, link)
		_, err = fsys.Readlink(dir + "/blobs/x")
		want(t, err, syscall.EINVAL, dir+"/blobs/x")
		_, err = fsys.Stat(dir + "/loop")
		want(t, err, syscall.ELOOP, dir+"/loop")
		_, err = fsys.Resolve(dir + "/none")
		want(t, err, fs.ErrNotExist, dir+"/none")
	},
	"times": func(t *testing.T, fsys files.FS, dir string) {
		write(t, fsys, dir+"/x", "1")
		a, err := fsys.Stat(dir + "/x")
		must(t, err)
		read(t, fsys, dir+"/x")
		b, err := fsys.Stat(dir + "/x")
		must(t, err)
		if !a.ModTime().Equal(b.ModTime()) || a.ModTime().IsZero() {
			t.Errorf("%v before reading, %v after", a.ModTime(), b.ModTime())
		}
		if first, second := fsys.BootID(), fsys.BootID(); first != second {
			t.Error("booted in between")
		}
	},
	"locks": func(t *testing.T, fsys files.FS, dir string) {
		open := func() files.File {
			f, err := fsys.OpenFile(dir+"/lock", os.O_RDWR|os.O_CREATE, 0o600)
			must(t, err)
			return f
		}
		a, b := open(), open()
		defer b.Close()
		must(t, a.Lock())
		must(t, a.Lock())
		if err := b.Lock(); !errors.Is(err, syscall.EWOULDBLOCK) {
			t.Errorf("locked twice: %v", err)
		}
		must(t, a.Close())
		must(t, b.Lock())
	},
	"a data directory": func(t *testing.T, fsys files.FS, dir string) {
		d, err := files.Open(fsys, dir+"/a/data")
		must(t, err)
		unlock, err := d.Lock()
		must(t, err)
		other, err := files.Open(fsys, dir+"/a/data")
		must(t, err)
		if _, err := other.Lock(); err == nil || !strings.Contains(err.Error(), "in use") {
			t.Errorf("locked twice: %v", err)
		}
		must(t, d.WriteFile("b/c", []byte("1")))
		must(t, d.WriteFile("b/c", []byte("2")))
		must(t, d.Sync("b/c"))
		must(t, d.WriteDurable("e", []byte("3")))
		must(t, d.Symlink("b", "current"))
		must(t, d.Symlink("b", "current"))
		if err := d.WriteFile("b", nil); err == nil || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("over a directory: %v", err)
		}
		if got, err := d.ReadFile("current/c"); err != nil || string(got) != "2" {
			t.Errorf("read %q, %v", got, err)
		}
		if names, err := d.List("."); err != nil || strings.Join(names, " ") != "current e" {
			t.Errorf("list %v, %v", names, err)
		}
		spool, err := d.CreateSpool()
		must(t, err)
		_, err = spool.Write([]byte("spooled"))
		must(t, err)
		_, err = spool.Seek(2, io.SeekStart)
		must(t, err)
		if got, err := io.ReadAll(spool); err != nil || string(got) != "ooled" {
			t.Errorf("spool %q, %v", got, err)
		}
		spool.Close()
		write(t, fsys, d.Path("b")+"/.tmp-left", "")
		unlock()
		unlock, err = other.Lock()
		must(t, err)
		defer unlock()
		if _, err := fsys.Lstat(d.Path("b") + "/.tmp-left"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("leftover: %v", err)
		}
	},
	"checkpoints": roundTrip,
}

// roundTrip writes a checkpoint, reads it, replaces it and notices that.
func roundTrip(t *testing.T, fsys files.FS, dir string) {
	tensors := []safetensors.Tensor{{Name: "a", DType: "BF16", Shape: []uint64{3, 5000}, Size: 30000}, {Name: "b", DType: "U8", Shape: []uint64{7}, Size: 7}}
	path := filepath.Join(dir, "model.safetensors")
	save := func(fill byte) {
		w, err := safetensors.CreateOn(fsys, path, tensors, map[string]string{"format": "pt"})
		must(t, err)
		for i, tensor := range tensors {
			must(t, w.WriteAt(i, bytes.Repeat([]byte{fill}, int(tensor.Size)), 0))
		}
		if _, err := safetensors.CreateOn(fsys, path, tensors, nil); err == nil || !strings.Contains(err.Error(), "another writer") {
			t.Errorf("a second writer: %v", err)
		}
		must(t, w.Commit())
	}
	save(1)
	c, err := safetensors.OpenOn(fsys, dir)
	must(t, err)
	defer c.Close()
	must(t, c.Changed())
	write(t, fsys, path+".partial", "left by a crash")
	save(2)
	if err := c.Changed(); err == nil {
		t.Error("a replaced file was not noticed")
	}
	p := make([]byte, 30000)
	must(t, c.ReadAt(0, p, 0))
	if !bytes.Equal(p, bytes.Repeat([]byte{1}, 30000)) {
		t.Error("the open checkpoint changed")
	}
	again, err := safetensors.OpenOn(fsys, path)
	must(t, err)
	defer again.Close()
	must(t, again.ReadAt(1, p[:7], 0))
	if !bytes.Equal(p[:7], bytes.Repeat([]byte{2}, 7)) {
		t.Errorf("the new one holds %v", p[:7])
	}
	if entries, err := fsys.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left %v, %v", entries, err)
	}
}

func TestFacesBehaveAlike(t *testing.T) {
	for face, make := range faces(t) {
		for name, test := range suite {
			t.Run(face+"/"+name, func(t *testing.T) {
				fsys, dir := make(t)
				test(t, fsys, dir)
			})
		}
	}
}
