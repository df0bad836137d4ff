package faults

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/delta/safetensors"
	"github.com/sparsecast/sparsecast/node/files"
)

func TestKillEndsAProcess(t *testing.T) {
	d := NewDisk(time.Now)
	m := d.Mount()
	f, err := m.OpenFile("/x", os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	must(t, f.Lock())
	_, err = f.WriteAt([]byte("written"), 0)
	must(t, err)
	m.Kill()
	_, readErr := f.ReadAt(make([]byte, 1), 0)
	_, writeErr := f.WriteAt([]byte("ghost"), 0)
	_, statErr := m.Stat("/x")
	for what, err := range map[string]error{
		"read": readErr, "write": writeErr, "stat": statErr, "sync": f.Sync(), "close": f.Close(),
		"rename": m.Rename("/x", "/y"), "remove": m.RemoveAll("/x"), "mkdir": m.MkdirAll("/d", 0o700),
	} {
		if !errors.Is(err, ErrKilled) {
			t.Errorf("%s: %v", what, err)
		}
	}
	next := d.Mount()
	if got := read(t, next, "/x"); got != "written" {
		t.Errorf("the next process reads %q", got)
	}
	g, err := next.OpenFile("/x", os.O_RDWR, 0)
	must(t, err)
	must(t, g.Lock())
	if next.BootID() != m.BootID() {
		t.Error("a killed process rebooted the machine")
	}
	d.PowerLoss(rand.New(rand.NewPCG(1, 1)))
	if _, err := next.Stat("/x"); !errors.Is(err, ErrKilled) {
		t.Errorf("after a loss of power: %v", err)
	}
	if d.Mount().BootID() == m.BootID() {
		t.Error("no new boot")
	}
}

func TestFullDisk(t *testing.T) {
	d := NewDisk(time.Now)
	m := d.Mount()
	_, err := m.Free("/x")
	want(t, err, errors.ErrUnsupported, "/x")
	d.SetLimit(10 * page)
	must(t, d.WriteFile("/old", make([]byte, 4*page), 0o600))
	if free, err := (&Failing{On: m}).Free("/x"); err != nil || free != 6*page {
		t.Errorf("%d bytes free, %v", free, err)
	}
	f, err := m.OpenFile("/x", os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	n, err := f.WriteAt(make([]byte, 8*page), 0)
	want(t, err, syscall.ENOSPC, "/x")
	if n != 6*page || d.Used() != 10*page {
		t.Errorf("wrote %d, %d used", n, d.Used())
	}
	_, err = f.WriteAt(make([]byte, 6*page), 0) // over what is there
	must(t, err)
	must(t, f.Truncate(page))
	want(t, f.Reserve(8*page), syscall.ENOSPC, "/x")
	must(t, m.Remove("/x"))
	if d.Used() <= 4*page {
		t.Errorf("%d used: an open file takes its space", d.Used())
	}
	must(t, f.Close())
	if d.Used() != 4*page {
		t.Errorf("%d used", d.Used())
	}
	_, err = safetensors.CreateOn(m, "/y", []safetensors.Tensor{{Name: "a", DType: "U8", Shape: []uint64{7 * page}, Size: 7 * page}}, nil)
	want(t, err, syscall.ENOSPC, "reserve")
	if got := d.Files(); len(got) != 1 || d.Used() != 4*page {
		t.Errorf("left %v, %d used", got, d.Used())
	}
	dir, err := files.Open(m, "/data")
	must(t, err)
	want(t, dir.WriteFile("x", make([]byte, 7*page)), syscall.ENOSPC, "larger disk")
	if got := d.Files(); len(got) != 1 {
		t.Errorf("left %v", got)
	}
}

func TestReadOnly(t *testing.T) {
	d := NewDisk(time.Now)
	m := d.Mount()
	must(t, d.WriteFile("/d/x", []byte("text"), 0o600))
	f, err := m.OpenFile("/d/x", os.O_RDWR, 0)
	must(t, err)
	d.SetReadOnly(true)
	_, writeErr := f.WriteAt([]byte("X"), 0)
	_, openErr := m.OpenFile("/d/x", os.O_RDWR, 0)
	_, createErr := m.OpenFile("/d/y", os.O_RDWR|os.O_CREATE, 0)
	for what, err := range map[string]error{
		"write": writeErr, "open": openErr, "create": createErr, "truncate": f.Truncate(0), "reserve": f.Reserve(1),
		"rename": m.Rename("/d/x", "/d/y"), "remove": m.Remove("/d/x"), "mkdir": m.MkdirAll("/d/e", 0o700), "link": m.Symlink("x", "/d/l"),
	} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := read(t, m, "/d/x"); got != "text" {
		t.Errorf("reads %q", got)
	}
	d.SetReadOnly(false)
	must(t, m.Remove("/d/x"))
}

func TestRot(t *testing.T) {
	d := NewDisk(time.Now)
	m := d.Mount()
	must(t, d.WriteFile("/x", []byte("text"), 0o600))
	before, err := m.Stat("/x")
	must(t, err)
	must(t, d.FlipBit("/x", 8))
	if got := read(t, m, "/x"); got != "tdxt" {
		t.Errorf("reads %q", got)
	}
	after, err := m.Stat("/x")
	must(t, err)
	if !m.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Error("rot left a trace")
	}
	d.PowerLoss(rand.New(rand.NewPCG(0, 0)))
	if b, err := d.ReadFile("/x"); err != nil || string(b) != "tdxt" {
		t.Errorf("the platter holds %q, %v", b, err)
	}
	for _, bit := range []int64{-1, 32} {
		if err := d.FlipBit("/x", bit); err == nil {
			t.Errorf("flipped bit %d of 32", bit)
		}
	}
	want(t, d.FlipBit("/none", 0), fs.ErrNotExist, "/none")
	want(t, d.FlipBit("/", 0), syscall.EINVAL, "/")
}

// A checkpoint that is cut under its reader is an error there, and seen as a change.
func TestTruncateUnderAReader(t *testing.T) {
	d := NewDisk(time.Now)
	m := d.Mount()
	w, err := safetensors.CreateOn(m, "/x", []safetensors.Tensor{{Name: "a", DType: "U8", Shape: []uint64{9}, Size: 9}}, nil)
	must(t, err)
	must(t, w.Commit())
	c, err := safetensors.OpenOn(m, "/x")
	must(t, err)
	b, err := d.ReadFile("/x")
	must(t, err)
	must(t, d.Truncate("/x", int64(len(b)-1)))
	if err := c.ReadAt(0, make([]byte, 9), 0); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read %v", err)
	}
	if c.Changed() == nil {
		t.Error("not seen")
	}
}

func TestTwoChangesNeverGetOneTime(t *testing.T) {
	d := NewDisk(func() time.Time { return time.Unix(1000, 0) })
	m := d.Mount()
	f, err := m.OpenFile("/x", os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	seen := map[time.Time]bool{}
	for range 10 {
		_, err := f.WriteAt([]byte("x"), 0)
		must(t, err)
		info, err := f.Stat()
		must(t, err)
		seen[info.ModTime()] = true
	}
	if len(seen) != 10 {
		t.Errorf("%d times for 10 changes", len(seen))
	}
}

// The hook sees every call before it happens and can end the process there.
func TestOnCall(t *testing.T) {
	d := NewDisk(time.Now)
	m := d.Mount()
	var trace []string
	m.OnCall = func(op Op) error {
		text := op.Call
		if op.Writes {
			text += "!"
		}
		if trace = append(trace, text); op.N != uint64(len(trace)) {
			t.Errorf("call %d has number %d", len(trace), op.N)
		}
		if op.Call == "rename" {
			m.Kill()
		}
		return nil
	}
	dir, err := files.Open(m, "/data")
	must(t, err)
	if err := dir.WriteDurable("x", []byte("1")); !errors.Is(err, ErrKilled) {
		t.Errorf("killed: %v", err)
	}
	if got := strings.Join(trace, " "); got != "stat stat mkdir! syncdir! create! write! sync! close rename!" {
		t.Errorf("calls %s", got)
	}
	if m.Calls() != uint64(len(trace)) {
		t.Errorf("counted %d", m.Calls())
	}
	if got := d.Files(); len(got) != 1 || !strings.HasPrefix(got[0], "/data/.tmp-") {
		t.Errorf("left %v", got)
	}
}

// After a Sync that failed the next one succeeds, and what was dirty is on no platter.
func TestFailedSyncForgets(t *testing.T) {
	d := NewDisk(time.Now)
	must(t, d.WriteFile("/x", []byte("old"), 0o600))
	m := d.Mount()
	fail := true
	m.OnCall = func(op Op) error {
		if op.Call == "sync" && fail {
			fail = false
			return syscall.EIO
		}
		return nil
	}
	f, err := m.OpenFile("/x", os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte("new"), 0)
	must(t, err)
	want(t, f.Sync(), syscall.EIO, "/x")
	must(t, f.Sync())
	if got := read(t, m, "/x"); got != "new" {
		t.Errorf("the cache holds %q", got)
	}
	d.PowerLoss(rand.New(rand.NewPCG(0, 0)))
	if b, err := d.ReadFile("/x"); err != nil || string(b) != "old" {
		t.Errorf("the platter holds %q, %v", b, err)
	}
}

func TestFailing(t *testing.T) {
	d := NewDisk(time.Now)
	f := &Failing{On: d.Mount(), When: func(op Op) bool { return op.Call == "write" }, Nth: 2, Err: syscall.ENOSPC, Short: true}
	file, err := f.OpenFile("/x", os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	put := func(text string) (int, error) { return file.WriteAt([]byte(text), 0) }
	if _, err := put("1111"); err != nil {
		t.Error(err)
	}
	n, err := put("2222")
	want(t, err, syscall.ENOSPC, "/x")
	if got := read(t, f, "/x"); n != 2 || got != "2211" {
		t.Errorf("wrote %d: %q", n, got)
	}
	if _, err := put("3333"); err != nil {
		t.Errorf("once: %v", err)
	}
	f.Forever, f.Short = true, false
	n, err = put("4444")
	want(t, err, syscall.ENOSPC, "/x")
	if got := read(t, f, "/x"); n != 0 || got != "3333" || f.Picked() != 4 {
		t.Errorf("wrote %d: %q, picked %d", n, got, f.Picked())
	}
	f.When = func(op Op) bool { return op.Call == "rename" && op.Path == "/y" }
	must(t, f.Rename("/x", "/z"))
	want(t, f.Rename("/z", "/y"), syscall.ENOSPC, "/z")
}

// Whichever call fails, and however, a file that is replaced durably is the old one or the new, nothing else is left
// once the directory is locked again, and whoever was told yes keeps the new one through a loss of power.
func TestDurableWritesOutliveEveryFault(t *testing.T) {
	texts := map[string]string{"old": strings.Repeat("old.", page), "new": strings.Repeat("new!", 2*page)}
	kinds := map[string]func(m *Mount) error{
		"killed":         func(m *Mount) error { m.Kill(); return nil },
		"EIO":            func(*Mount) error { return syscall.EIO },
		"ENOSPC":         func(*Mount) error { return syscall.ENOSPC },
		"killed, lights": func(m *Mount) error { m.disk.PowerLoss(rand.New(rand.NewPCG(m.calls, 3))); return nil },
	}
	for kind, harm := range kinds {
		for nth := uint64(1); ; nth++ {
			d := NewDisk(time.Now)
			must(t, d.WriteFile("/data/d/x", []byte(texts["old"]), 0o600))
			m := d.Mount()
			dir, err := files.Open(m, "/data")
			must(t, err)
			first := m.Calls()
			m.OnCall = func(op Op) error {
				if op.N == first+nth {
					return harm(m)
				}
				return nil
			}
			err = dir.WriteDurable("d/x", []byte(texts["new"]))
			told := err == nil
			m.Kill()
			if told || kind == "killed" {
				d.PowerLoss(rand.New(rand.NewPCG(nth, 4)))
			}
			again, err := files.Open(d.Mount(), "/data")
			must(t, err)
			_, err = again.Lock()
			must(t, err)
			got, err := again.ReadFile("d/x")
			must(t, err)
			if string(got) != texts["new"] && (told || string(got) != texts["old"]) {
				t.Fatalf("%s at call %d: told %v, and found %q", kind, nth, told, got[:min(8, len(got))])
			}
			if left := d.Files(); len(left) != 2 {
				t.Fatalf("%s at call %d: left %v", kind, nth, left)
			}
			if m.Calls() < first+nth {
				break
			}
		}
	}
}

// The same for checkpoints: a committed one is whole, at every point of a crash. One that was only placed may be torn
// by a loss of power, and then does not pass for another state than it was.
func TestCommitsOutliveEveryCrash(t *testing.T) {
	tensors := []safetensors.Tensor{{Name: "a", DType: "U8", Shape: []uint64{3 * page}, Size: 3 * page}}
	torn := false
	for _, place := range []bool{false, true} {
		for nth := uint64(1); ; nth++ {
			d := NewDisk(time.Now)
			m := d.Mount()
			must(t, m.MkdirAll("/d", 0o700))
			must(t, m.SyncDir("/"))
			put := func(fill byte, place bool) error {
				w, err := safetensors.CreateOn(m, "/d/x", tensors, nil)
				if err != nil {
					return err
				}
				defer w.Abort()
				if err := w.WriteAt(0, bytes.Repeat([]byte{fill}, 3*page), 0); err != nil {
					return err
				}
				if place {
					return w.Place()
				}
				return w.Commit()
			}
			must(t, put(1, false))
			first := m.Calls()
			m.OnCall = func(op Op) error {
				if op.N == first+nth {
					d.PowerLoss(rand.New(rand.NewPCG(nth, 5)))
				}
				return nil
			}
			told := put(2, place) == nil
			d.PowerLoss(rand.New(rand.NewPCG(nth, 6)))
			fill, err := uniform(d.Mount())
			whole := err == nil && (fill == 2 || fill == 1 && !told)
			torn = torn || place && !whole
			if !whole && !place {
				t.Fatalf("call %d: told %v, and found %d, %v", nth, told, fill, err)
			}
			if m.Calls() < first+nth {
				break
			}
		}
	}
	if !torn {
		t.Error("placing without a sync never harmed anything: no crash is being made")
	}
}

// uniform returns the one byte that a checkpoint is filled with.
func uniform(m *Mount) (byte, error) {
	c, err := safetensors.OpenOn(m, "/d/x")
	if err != nil {
		return 0, err
	}
	defer c.Close()
	p := make([]byte, 3*page)
	if err := c.ReadAt(0, p, 0); err != nil {
		return 0, err
	}
	if !bytes.Equal(p, bytes.Repeat(p[:1], len(p))) {
		return 0, errors.New("torn")
	}
	return p[0], nil
}
