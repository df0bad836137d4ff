package mesh

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
)

func openDisk(t *testing.T, files FS) Store {
	t.Helper()
	s, err := NewDiskStore(files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func putBlock(t *testing.T, s Store, text string) cid.Cid {
	t.Helper()
	id := delta.Sum([]byte(text))
	if err := s.Put(id, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestDiskStore(t *testing.T) {
	testStore(t, func() Store { return openDisk(t, newDiskStub()) })
}

func TestDiskStoreFindsItsBlocksAgain(t *testing.T) {
	disk := newDiskStub()
	id := putBlock(t, openDisk(t, disk), "a")
	for _, foreign := range []string{"blocks/00/README", "blocks/00/" + id.String(), "head.signed"} {
		if err := disk.WriteFile(foreign, []byte("a")); err != nil {
			t.Fatal(err)
		}
	}
	s := openDisk(t, disk)
	if all, err := s.List(); err != nil || len(all) != 1 || all[0] != id {
		t.Errorf("found %v, %v, want %s", all, err, id)
	}
	if data, err := s.Get(id); err != nil || string(data) != "a" {
		t.Errorf("got %q, %v", data, err)
	}
	if blocks, bytes := s.Size(); blocks != 1 || bytes != 1 {
		t.Errorf("says %d blocks of %d bytes", blocks, bytes)
	}
}

func TestDiskStoreKeepsSyncedBlocksThroughACrash(t *testing.T) {
	disk := newDiskStub()
	s := openDisk(t, disk)
	kept := putBlock(t, s, "kept")
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	lost := putBlock(t, s, "lost")
	after := openDisk(t, disk.crash())
	if !after.Has(kept) || after.Has(lost) {
		t.Errorf("after a crash: synced block %v, unsynced block %v", after.Has(kept), after.Has(lost))
	}
}

func TestDiskStoreDropsRottenBlocks(t *testing.T) {
	for name, rot := range map[string]func(d *diskStub, file string) error{
		"flipped":   func(d *diskStub, file string) error { return d.WriteFile(file, []byte("b")) },
		"truncated": func(d *diskStub, file string) error { return d.WriteFile(file, nil) },
		"gone":      func(d *diskStub, file string) error { return d.Remove(file) },
	} {
		disk := newDiskStub()
		s := openDisk(t, disk)
		id := putBlock(t, s, "a")
		file, err := blockFile(id)
		if err != nil {
			t.Fatal(err)
		}
		if err := rot(disk, file); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(id); !errors.Is(err, ErrNotFound) || s.Has(id) || len(disk.files) > 0 {
			t.Errorf("%s block: %v, held %v, files %v", name, err, s.Has(id), disk.files)
		}
		putBlock(t, s, "a")
		if _, err := s.Get(id); err != nil {
			t.Errorf("%s block, put again: %v", name, err)
		}
	}
}

func TestDiskStoreReportsAFullDisk(t *testing.T) {
	disk := newDiskStub()
	s := openDisk(t, disk)
	disk.fail = syscall.ENOSPC
	id := delta.Sum([]byte("a"))
	if err := s.Put(id, []byte("a")); !errors.Is(err, syscall.ENOSPC) || s.Has(id) {
		t.Errorf("put on a full disk: %v, held %v", err, s.Has(id))
	}
}

// unsyncedDisk is a disk whose fsync fails.
type unsyncedDisk struct{ *diskStub }

func (unsyncedDisk) Sync(...string) error { return syscall.EIO }

func (unsyncedDisk) WriteDurable(string, []byte) error { return syscall.EIO }

func TestDiskStoreCondemnsWhatItCannotSync(t *testing.T) {
	disk := unsyncedDisk{newDiskStub()}
	s := openDisk(t, disk)
	id := putBlock(t, s, "a")
	if err := s.Sync(); !errors.Is(err, syscall.EIO) || s.Has(id) || len(disk.files) > 0 {
		t.Errorf("failed sync: %v, held %v, files %v", err, s.Has(id), disk.files)
	}
	if err := s.Sync(); err != nil {
		t.Errorf("sync of nothing: %v", err)
	}
}

// unreadableDisk is a disk that cannot list or read.
type unreadableDisk struct {
	*diskStub
	err error
}

func (d unreadableDisk) ReadFile(name string) ([]byte, error) { return nil, d.err }

func TestDiskStoreKeepsBlocksThatItCannotReadForNow(t *testing.T) {
	s := openDisk(t, unreadableDisk{newDiskStub(), syscall.EMFILE})
	id := putBlock(t, s, "a")
	if _, err := s.Get(id); !errors.Is(err, syscall.EMFILE) || errors.Is(err, ErrNotFound) || !s.Has(id) {
		t.Errorf("get without file descriptors: %v, held %v", err, s.Has(id))
	}
}

func TestBlockFilesLieInSmallDirectories(t *testing.T) {
	id := delta.Sum([]byte("a"))
	file, err := blockFile(id)
	if err != nil {
		t.Fatal(err)
	}
	d, err := delta.Digest(id)
	if want := fmt.Sprintf("blocks/%02x/%s", d[0], id); err != nil || file != want || strings.Contains(file, "..") {
		t.Errorf("got %s, want %s", file, want)
	}
}

// clingingDisk does not remove files for a while.
type clingingDisk struct {
	*diskStub
	clings bool
}

func (d *clingingDisk) Remove(name string) error {
	if d.clings {
		return syscall.EIO
	}
	return d.diskStub.Remove(name)
}

// What could not be deleted is not held any more, and is still there for the next attempt.
func TestDiskStoreRemembersWhatItCouldNotDelete(t *testing.T) {
	disk := &clingingDisk{newDiskStub(), true}
	s := openDisk(t, disk)
	id, other := putBlock(t, s, "a"), putBlock(t, s, "b")
	for range 2 {
		if err := s.Delete(id); !errors.Is(err, syscall.EIO) {
			t.Errorf("delete: %v", err)
		}
	}
	if s.Has(id) {
		t.Error("held after it was to be deleted")
	}
	if all, err := s.List(); err != nil || !slices.Equal(sorted(all), sorted([]cid.Cid{id, other})) {
		t.Errorf("lists %v, %v", all, err)
	}
	if putBlock(t, s, "a"); !s.Has(id) {
		t.Error("not held after it was put again")
	}
	disk.clings = false
	if err := s.Delete(id); err != nil {
		t.Error(err)
	}
	if all, err := s.List(); err != nil || len(all) != 1 || len(disk.files) != 1 {
		t.Errorf("lists %v, %v, and the disk has %d files", all, err, len(disk.files))
	}
}

// A process may die between Put and Sync; then what it put may be torn, or may be lost only later. Whoever puts the same
// again and syncs must be able to rely on it.
func TestDiskStorePutsAgainWhatAnotherProcessPut(t *testing.T) {
	disk := newDiskStub()
	torn := putBlock(t, openDisk(t, disk), "torn")
	whole := putBlock(t, openDisk(t, disk), "whole")
	file, err := blockFile(torn)
	if err != nil {
		t.Fatal(err)
	}
	if err := disk.WriteFile(file, []byte("to")); err != nil {
		t.Fatal(err)
	}
	s := openDisk(t, disk)
	putBlock(t, s, "torn")
	putBlock(t, s, "whole")
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	s = openDisk(t, disk.crash())
	for _, id := range []cid.Cid{torn, whole} {
		if _, err := s.Get(id); err != nil {
			t.Errorf("lost after a sync: %v", err)
		}
	}
}

// A block that was durable before, and may be on offer, outlives a failing disk while it is put again.
func TestDiskStoreKeepsWhatItPutsAgain(t *testing.T) {
	disk := newDiskStub()
	s := openDisk(t, disk)
	id := putBlock(t, s, "a")
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	s = openDisk(t, unsyncedDisk{disk})
	_ = s.Put(id, []byte("a"))
	_ = s.Sync()
	for what, d := range map[string]*diskStub{"then": disk, "after a loss of power": disk.crash()} {
		if _, err := openDisk(t, d).Get(id); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
