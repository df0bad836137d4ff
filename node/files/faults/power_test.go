package faults

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// past is what a file may hold after a loss of power.
type past struct {
	sizes []int64   // at the last sync first, the current one last
	pages [4][]byte // the fill of each page, likewise
}

func newPast() *past {
	p := &past{sizes: []int64{0}}
	for i := range p.pages {
		p.pages[i] = []byte{0}
	}
	return p
}

func last[T any](list []T) T { return list[len(list)-1] }

// model knows what a disk of four names, in two directories, may hold.
type model struct {
	disk  *Disk
	mount *Mount
	names map[string][]*inode // what each leads to, at the last sync first; nil is nothing
	files map[*inode]*past
}

var modelNames = []string{"/d/a", "/d/b", "/e/a", "/e/b"}

func newModel(t *rapid.T) *model {
	m := &model{disk: NewDisk(func() time.Time { return time.Unix(0, 0) }), names: map[string][]*inode{}, files: map[*inode]*past{}}
	m.mount = m.disk.Mount()
	for _, dir := range []string{"/d", "/e"} {
		must(t, m.mount.MkdirAll(dir, 0o700))
	}
	must(t, m.mount.SyncDir("/"))
	for _, name := range modelNames {
		m.names[name] = []*inode{nil}
	}
	return m
}

// draw returns a name that leads somewhere, or that does not.
func (m *model) draw(t *rapid.T, label string, there bool) string {
	var fit []string
	for _, name := range modelNames {
		if (last(m.names[name]) != nil) == there {
			fit = append(fit, name)
		}
	}
	if len(fit) == 0 {
		t.Skip("none")
	}
	return rapid.SampledFrom(fit).Draw(t, label)
}

func (m *model) create(t *rapid.T) {
	name := m.draw(t, "name", false)
	f, err := m.mount.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	must(t, err)
	must(t, f.Close())
	n := m.at(name)
	m.names[name] = append(m.names[name], n)
	m.files[n] = newPast()
}

// at returns what a name leads to on the disk.
func (m *model) at(name string) *inode {
	return m.disk.root.names[path.Dir(name)[1:]].names[path.Base(name)]
}

func (m *model) edit(t *rapid.T) {
	name := m.draw(t, "name", true)
	f, err := m.mount.OpenFile(name, os.O_RDWR, 0)
	must(t, err)
	p := m.files[last(m.names[name])]
	switch rapid.IntRange(0, 2).Draw(t, "what") {
	case 0:
		at, fill := rapid.IntRange(0, 3).Draw(t, "page"), rapid.ByteRange(1, 255).Draw(t, "fill")
		_, err = f.WriteAt(slices.Repeat([]byte{fill}, page), int64(at)*page)
		p.pages[at] = append(p.pages[at], fill)
		p.sizes = append(p.sizes, max(last(p.sizes), int64(at+1)*page))
	case 1:
		size := rapid.Int64Range(0, 4).Draw(t, "size")
		err = f.Truncate(size * page)
		p.sizes = append(p.sizes, size*page)
		for i := size; i < 4; i++ {
			p.pages[i] = append(p.pages[i], 0)
		}
	default:
		err = f.Sync()
		p.sizes = []int64{last(p.sizes)}
		for i := range p.pages {
			p.pages[i] = []byte{last(p.pages[i])}
		}
	}
	must(t, err)
	must(t, f.Close())
}

func (m *model) rename(t *rapid.T) {
	from, to := m.draw(t, "from", true), rapid.SampledFrom(modelNames).Draw(t, "to")
	must(t, m.mount.Rename(from, to))
	if from != to {
		m.names[to] = append(m.names[to], last(m.names[from]))
		m.names[from] = append(m.names[from], nil)
	}
}

func (m *model) remove(t *rapid.T) {
	name := m.draw(t, "name", true)
	must(t, m.mount.Remove(name))
	m.names[name] = append(m.names[name], nil)
}

func (m *model) syncDir(t *rapid.T) {
	dir := rapid.SampledFrom([]string{"/d", "/e"}).Draw(t, "dir")
	must(t, m.mount.SyncDir(dir))
	for _, name := range modelNames {
		if path.Dir(name) == dir {
			m.names[name] = []*inode{last(m.names[name])}
		}
	}
}

// kill ends the process, which changes nothing.
func (m *model) kill(*rapid.T) {
	m.mount.Kill()
	m.mount = m.disk.Mount()
}

func (m *model) lose(t *rapid.T) {
	sure := m.neverGone()
	m.disk.PowerLoss(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
	m.mount = m.disk.Mount()
	seen := map[*inode]string{}
	for _, name := range modelNames {
		n := m.at(name)
		if !slices.Contains(m.names[name], n) {
			t.Fatalf("%s leads to a file that never had this name since the last sync", name)
		}
		m.names[name] = []*inode{n}
		if n == nil {
			continue
		}
		if seen[n] != "" {
			t.Fatalf("%s and %s lead to one file: half a rename", name, seen[n])
		}
		seen[n] = name
		m.found(t, name, n)
	}
	for _, n := range sure {
		if seen[n] == "" {
			t.Fatal("a file whose name was synced, and that was only renamed, is gone")
		}
	}
}

// neverGone returns the files that have a durable name and were at most renamed since, over no other.
func (m *model) neverGone() (sure []*inode) {
	for _, name := range modelNames {
		n := m.names[name][0]
		if n == nil {
			continue
		}
		reach, uses := false, 0
		for _, other := range modelNames {
			reach = reach || last(m.names[other]) == n
			for i, x := range m.names[other] {
				if x == n && (i+1 == len(m.names[other]) || m.names[other][i+1] == nil) {
					uses++
				} else if x == n {
					uses = 100 // it was replaced there, perhaps before it was renamed from elsewhere
				}
			}
		}
		if reach && uses < 100 {
			sure = append(sure, n)
		}
	}
	return sure
}

// found checks a file after a loss of power, and knows it from then on.
func (m *model) found(t *rapid.T, name string, n *inode) {
	p := m.files[n]
	got := read(t, m.mount, name)
	if low, high := min(p.sizes[0], last(p.sizes)), max(p.sizes[0], last(p.sizes)); n.size < low || n.size > high || int64(len(got)) != n.size {
		t.Fatalf("%s: %d bytes, want %v", name, len(got), p.sizes)
	}
	now := newPast()
	now.sizes = []int64{n.size}
	for i := range p.pages {
		if (i+1)*page > len(got) {
			continue
		}
		fill := got[i*page]
		if !slices.Contains(p.pages[i], fill) && fill != 0 {
			t.Fatalf("%s: page %d holds %d, want one of %v", name, i, fill, p.pages[i])
		}
		if len(p.pages[i]) == 1 && len(p.sizes) == 1 && fill != p.pages[i][0] {
			t.Fatalf("%s: page %d holds %d, %d was synced", name, i, fill, p.pages[i][0])
		}
		now.pages[i] = []byte{fill}
	}
	m.files[n] = now
}

// check compares what processes see with the model.
func (m *model) check(t *rapid.T) {
	used := int64(0)
	for _, name := range modelNames {
		n := m.at(name)
		if n != last(m.names[name]) {
			t.Fatalf("%s leads elsewhere", name)
		}
		if n == nil {
			continue
		}
		got, p := read(t, m.mount, name), m.files[n]
		if int64(len(got)) != last(p.sizes) {
			t.Fatalf("%s: %d bytes, want %d", name, len(got), last(p.sizes))
		}
		for i := range len(got) / page {
			if got[i*page] != last(p.pages[i]) || got[(i+1)*page-1] != last(p.pages[i]) {
				t.Fatalf("%s: page %d holds %d, want %d", name, i, got[i*page], last(p.pages[i]))
			}
		}
		for range n.taken.all() {
			used += page
		}
	}
	if m.disk.Used() != used {
		t.Fatalf("%d bytes used, the files take %d", m.disk.Used(), used)
	}
}

func TestPowerLossKeepsWhatWasSynced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"create": m.create, "edit": m.edit, "edit more": m.edit, "rename": m.rename, "remove": m.remove,
			"sync directory": m.syncDir, "kill": m.kill, "lose power": m.lose, "": m.check,
		})
	})
}

// outcomes returns what a file is found to be after many losses of power in the midst of work, each once.
func outcomes(t *testing.T, name string, work func(*Mount) error) []string {
	t.Helper()
	found := map[string]bool{}
	for seed := range uint64(200) {
		d := NewDisk(time.Now)
		must(t, d.WriteFile(name, slices.Repeat([]byte("old."), 2*page/4), 0o600))
		m := d.Mount()
		must(t, work(m))
		d.PowerLoss(rand.New(rand.NewPCG(seed, 1)))
		b, err := d.ReadFile(name)
		if err != nil {
			found["gone"] = true
			continue
		}
		kind := fmt.Sprintf("%d:", len(b)/page)
		for at := 0; at < len(b); at += page {
			kind += string(b[at : at+4])
		}
		found[kind] = true
	}
	return slices.Sorted(maps.Keys(found))
}

func TestPowerLossFindsEveryOutcome(t *testing.T) {
	fill := func(m *Mount, path string, flag int) error {
		f, err := m.OpenFile(path, flag, 0o600)
		if err == nil {
			_, err = f.WriteAt(slices.Repeat([]byte("new!"), 2*page/4), 0)
		}
		return err
	}
	for name, c := range map[string]struct {
		work func(*Mount) error
		want []string
	}{
		"written in place": {
			func(m *Mount) error { return fill(m, "/d/x", os.O_RDWR) },
			[]string{"2:new!new!", "2:new!old.", "2:old.new!", "2:old.old."},
		},
		"replaced without a sync": {
			func(m *Mount) error {
				if err := fill(m, "/d/temp", os.O_RDWR|os.O_CREATE|os.O_EXCL); err != nil {
					return err
				}
				return m.Rename("/d/temp", "/d/x")
			},
			[]string{"0:", "1:\x00\x00\x00\x00", "1:new!", "2:\x00\x00\x00\x00\x00\x00\x00\x00", "2:\x00\x00\x00\x00new!",
				"2:new!\x00\x00\x00\x00", "2:new!new!", "2:old.old."},
		},
		"cut and extended, then synced": {
			func(m *Mount) error {
				f, err := m.OpenFile("/d/x", os.O_RDWR, 0)
				if err != nil {
					return err
				}
				return errors.Join(f.Truncate(page), f.Truncate(2*page), f.Sync())
			},
			[]string{"2:old.\x00\x00\x00\x00"},
		},
		"removed": {
			func(m *Mount) error { return m.Remove("/d/x") },
			[]string{"2:old.old.", "gone"},
		},
		"removed for good": {
			func(m *Mount) error {
				if err := m.Remove("/d/x"); err != nil {
					return err
				}
				return m.SyncDir("/d")
			},
			[]string{"gone"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcomes(t, "/d/x", c.work); !slices.Equal(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// What was renamed many times has one of its names, whichever of the renames were kept.
func TestPowerLossKeepsRenamesInOrder(t *testing.T) {
	found := map[string]bool{}
	for seed := range uint64(300) {
		d := NewDisk(time.Now)
		must(t, d.WriteFile("/d/a", []byte("x"), 0o600))
		m := d.Mount()
		must(t, m.MkdirAll("/e", 0o700))
		must(t, m.SyncDir("/"))
		must(t, m.Rename("/d/a", "/d/b"))
		must(t, m.Rename("/d/b", "/e/c"))
		must(t, m.Rename("/e/c", "/e/d"))
		if seed%2 == 0 {
			must(t, m.SyncDir("/e"))
		}
		d.PowerLoss(rand.New(rand.NewPCG(seed, 2)))
		names := strings.Join(d.Files(), " ")
		if seed%2 == 0 && names != "/e/d" {
			t.Fatalf("seed %d: synced, and found at %q", seed, names)
		}
		found[names] = true
	}
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, []string{"/d/a", "/d/b", "/e/c", "/e/d"}) {
		t.Errorf("found at %q", got)
	}
}

// Files that are replaced for ever without a sync take no more and more memory.
func TestUnsyncedChangesAreBounded(t *testing.T) {
	d := NewDisk(time.Now)
	m := d.Mount()
	for i := range 20 * maxUnsynced {
		write(t, m, "/temp", fmt.Sprint(i))
		must(t, m.Rename("/temp", "/x"))
	}
	if n := len(d.root.unsynced); n > maxUnsynced {
		t.Errorf("%d changes can be lost", n)
	}
	if n := len(d.changes); n > 3*maxUnsynced {
		t.Errorf("%d changes kept in all", n)
	}
	d.PowerLoss(rand.New(rand.NewPCG(0, 0)))
	if _, err := d.ReadFile("/x"); err != nil {
		t.Errorf("lost what waited long: %v", err)
	}
}

// Equal seeds give equal disks.
func TestPowerLossIsDeterministic(t *testing.T) {
	run := func(seed uint64) string {
		d := NewDisk(func() time.Time { return time.Unix(0, 0) })
		m := d.Mount()
		for i := range 40 {
			must(t, m.MkdirAll(fmt.Sprintf("/d%d/e", i%5), 0o700))
			name := fmt.Sprintf("/d%d/e/%d", i%5, i)
			write(t, m, name, fmt.Sprint(i))
			if i%3 == 0 {
				must(t, m.Rename(name, name+"x"))
			}
		}
		must(t, m.SyncDir("/d1/e"))
		must(t, m.SyncDir("/d1"))
		must(t, m.SyncDir("/"))
		d.PowerLoss(rand.New(rand.NewPCG(seed, 0)))
		text := ""
		for _, name := range d.Files() {
			b, err := d.ReadFile(name)
			must(t, err)
			text += fmt.Sprintf("%s %q\n", name, b)
		}
		return text
	}
	different := false
	for seed := range uint64(20) {
		if first, second := run(seed), run(seed); first != second {
			t.Fatalf("seed %d gives two disks", seed)
		}
		different = different || run(seed) != run(seed+1)
	}
	if !different {
		t.Error("all seeds give one disk")
	}
}
