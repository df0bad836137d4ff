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

// TestDiskFull fills the disk of a rollout between two updates.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	const size = 4_000_000
	states := steps(t, size, 2)
	f := newFleet(t, states[0], 2)
	full, other := f.rollouts()[0], f.rollouts()[1]
	mountSmall(t, full.data)
	f.start()
	v := f.publish(states[1])
	f.follow(v.VersionInfo, states[1], full, other)

	ballast := fill(t, full.data, size/2) // leaves room for code, not for another copy of the weights
	full.await("tell that its disk is too small", func(s api.Status) bool {
		return strings.Contains(strings.Join(s.Problems, "\n"), "still to come take")
	})
	v = f.publish(states[2])
	f.follow(v.VersionInfo, states[2], other)
	s := full.await("say that its disk is full", func(s api.Status) bool { return s.State == api.StateError })
	wantText(t, s.Error, "no space left on device")
	wantText(t, s.Error, "free some space")
	if s.Served == nil || s.Served.Number != v.Number-1 {
		t.Errorf("with a full disk it serves %v, want the version before", s.Served)
	}
	f.same(states[1], full)

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	f.follow(v.VersionInfo, states[2], full)
}

// mountSmall mounts a small disk at dir, which takes root.
func mountSmall(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	needs.Met(t, toMount, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=32m,mode=700"))
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// fill writes a file beside the data that leaves about so many bytes free, and returns its path.
func fill(t *testing.T, dir string, leave uint64) string {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "ballast")
	if err := os.WriteFile(path, make([]byte, st.Bavail*uint64(st.Bsize)-leave), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
