package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsecast/sparsecast/delta/needs"
	"github.com/sparsecast/sparsecast/node/api"
	"golang.org/x/sys/unix"
)

const (
	fullText     = "no space left on device"
	fullHint     = "free some space"
	readOnlyText = "read-only file system"
	readOnlyHint = "mount it for writing"
)

// TestTrainerDiskFull lets the disk of a trainer end at every step of a publish: with a page more each time, until one
// goes through.
func TestTrainerDiskFull(t *testing.T) {
	t.Parallel()
	const size, page = 1_000_000, 4096
	s := newSettled(t, size, 3, 1, func(s *settled) { mountSmall(t, s.trainer.data) })
	refused := 0
	for leave := uint64(0); ; leave += page {
		if leave == 4*page {
			leave = size &^ (page - 1) // what has no room for another copy of the weights fails alike
		}
		ballast := fill(t, s.trainer.data, leave)
		_, err := s.trainer.client.Publish(t.Context(), api.PublishRequest{Path: s.states[2]})
		if e := os.Remove(ballast); e != nil {
			t.Fatal(e)
		}
		if err == nil {
			break
		}
		refused++
		wantText(t, err.Error(), fullText)
		if n := strings.Count(err.Error(), fullHint); n != 1 {
			t.Errorf("tells %d times what to do: %v", n, err)
		}
		if leave > 2*size {
			t.Fatalf("with %d bytes free it still says: %v", leave, err)
		}
	}
	if refused < 8 {
		t.Errorf("%d publishes were refused, want every step of one to be", refused)
	}
	s.next++
	s.follow(*s.trainer.newest(), s.newest(), s.rollouts()...)
	s.goOn()
	t.Logf("%d publishes refused", refused)
}

// TestFollowersDiskFull fills the disks of a relay and a rollout: to the last byte, so that not even news can be noted,
// and so that news can be noted and no more.
func TestFollowersDiskFull(t *testing.T) {
	t.Parallel()
	const size, page = 1_000_000, 4096
	s := newSettled(t, size, 4, 2, func(s *settled) {
		mountSmall(t, s.relay.data)
		mountSmall(t, s.rollouts()[0].data)
	})
	full, other := s.rollouts()[0], s.rollouts()[1]
	for _, leave := range []uint64{0, 3 * page} {
		before := s.newest()
		ballasts := []string{fill(t, full.data, leave), fill(t, s.relay.data, leave)}
		v := s.publishNext()
		s.follow(v, s.newest(), other)
		s.troubled(full, before, fullText, fullHint)
		s.troubled(s.relay, before, fullText, fullHint)
		for _, b := range ballasts {
			if err := os.Remove(b); err != nil {
				t.Fatal(err)
			}
		}
		s.follow(v, s.newest(), full) // nobody had to start it again
		s.relayed(&v)
	}
	s.goOn()
}

// TestSlotsDiskFull fills a disk that holds the slots alone, as one in memory does.
func TestSlotsDiskFull(t *testing.T) {
	t.Parallel()
	const size = 1_000_000
	s := newSettled(t, size, 3, 1, func(s *settled) { mountSmall(t, filepath.Join(s.rollouts()[0].data, "slots")) })
	full := s.rollouts()[0]
	before := s.newest()
	ballast := fill(t, filepath.Join(full.data, "slots"), size/2)
	v := s.publishNext()
	s.troubled(full, before, fullText, fullHint, "slots")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	s.follow(v, s.newest(), full)
	s.goOn()
}

// TestReadOnlyDisk takes the right to write from every node in turn, as a kernel does whose disk fails.
func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	s := newSettled(t, 1_000_000, 5, 2, nil)
	sick, other := s.rollouts()[0], s.rollouts()[1]

	undo := readOnly(t, s.trainer.data)
	_, err := s.trainer.client.Publish(t.Context(), api.PublishRequest{Path: s.states[s.next]})
	if err == nil {
		t.Fatal("published with nowhere to write")
	}
	wantText(t, err.Error(), readOnlyText)
	wantText(t, err.Error(), readOnlyHint)
	undo()
	s.goOn()

	for _, h := range []*host{sick, s.relay} {
		before := s.newest()
		undo := readOnly(t, h.data)
		v := s.publishNext()
		s.follow(v, s.newest(), other)
		s.troubled(h, before, readOnlyText, readOnlyHint)
		undo()
		s.follow(v, s.newest(), s.rollouts()...)
		s.relayed(&v)
	}
	s.goOn()
}

// TestStartOnReadOnlyDisk starts nodes that cannot write. They end at once, and say what to do.
func TestStartOnReadOnlyDisk(t *testing.T) {
	t.Parallel()
	s := newSettled(t, 1_000_000, 2, 1, nil)
	for _, h := range s.hosts {
		h.kill()
		undo := readOnly(t, h.data)
		refusesToStart(t, h, readOnlyText, readOnlyHint)
		undo()
	}
	s.start()
	s.goOn()
}

// TestStartOnFullDisk starts a node that has no room for a byte.
func TestStartOnFullDisk(t *testing.T) {
	t.Parallel()
	s := newSettled(t, 1_000_000, 2, 1, func(s *settled) { mountSmall(t, s.rollouts()[0].data) })
	h := s.rollouts()[0]
	h.kill()
	ballast := fill(t, h.data, 0)
	h.start() // it serves on from what is there
	s.same(s.newest(), h)
	v := s.publishNext()
	s.troubled(h, s.states[1], fullText, fullHint)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	s.follow(v, s.newest(), h)
}

// toMount is what a test needs that makes a mount.
const toMount = "to run as root, to mount a disk"

// readOnly lays a mount without the right to write over dir, which takes root, until undo is called.
func readOnly(t *testing.T, dir string) (undo func()) {
	t.Helper()
	needs.Met(t, toMount, unix.Mount(dir, dir, "", unix.MS_BIND, ""))
	mounted := true
	undo = func() {
		if !mounted {
			return
		}
		mounted = false
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(undo)
	needs.Met(t, toMount, unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	return undo
}
