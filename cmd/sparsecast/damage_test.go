package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparsecast/sparsecast/node/api"
)

// TestDamagedSlot flips a bit in the weights that a rollout serves, and builds the next version from. The rollout
// notices, says so, and finds another way.
func TestDamagedSlot(t *testing.T) {
	t.Parallel()
	states := steps(t, 1_000_000, 2)
	f := newFleet(t, states[0], 2)
	f.start()
	v := f.publish(states[1])
	f.follow(v.VersionInfo, states[1], f.rollouts()...)
	flipServed(t, f.rollouts()[0])
	v = f.publish(states[2])
	f.follow(v.VersionInfo, states[2], f.rollouts()...)
	if b, err := os.ReadFile(f.rollouts()[0].log()); err != nil || !strings.Contains(string(b), "slot is damaged") {
		t.Errorf("the log says nothing about the damage (%v)", err)
	}
}

// TestDamageWhileDown flips a bit while the node is not running. It must not serve such weights again.
func TestDamageWhileDown(t *testing.T) {
	t.Parallel()
	states := steps(t, 1_000_000, 1)
	f := newFleet(t, states[0], 1)
	f.start()
	rollout := f.rollouts()[0]
	v := f.publish(states[1])
	f.follow(v.VersionInfo, states[1], rollout)
	rollout.kill()
	flipServed(t, rollout)
	rollout.start()
	f.follow(v.VersionInfo, states[1], rollout)
}

func flipServed(t *testing.T, h *host) {
	t.Helper()
	w, err := os.OpenFile(filepath.Join(h.current(), "model.safetensors"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	info, err := w.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if _, err := w.ReadAt(b, info.Size()-1000); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 4
	if _, err := w.WriteAt(b, info.Size()-1000); err != nil {
		t.Fatal(err)
	}
}

// TestReaderSeesWholeVersions reads what a rollout serves all the time, as an engine may, while versions come faster
// than anyone waits for them.
func TestReaderSeesWholeVersions(t *testing.T) {
	t.Parallel()
	states := denseSteps(t, 2_000_000, 8)
	f := newFleet(t, states[0], 1)
	f.start()
	rollout := f.rollouts()[0]
	var known []string
	for _, s := range states {
		known = append(known, digest(t, s))
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan []int, 1)
	go func() {
		var seen []int
		defer func() { done <- seen }()
		for ctx.Err() == nil {
			d, err := digestOf(rollout.current())
			if errors.Is(err, fs.ErrNotExist) {
				continue // the link was followed just before two switches
			}
			if err != nil {
				t.Error(err)
			}
			seen = append(seen, slices.Index(known, d))
		}
	}()
	var v api.PublishResult
	for _, s := range states[1:] {
		v = f.publish(s)
	}
	f.follow(v.VersionInfo, states[len(states)-1], rollout)
	stop()
	seen := <-done
	t.Logf("versions read: %v", seen)
	if len(seen) == 0 || slices.Contains(seen, -1) || !slices.IsSorted(seen) {
		t.Errorf("read versions %v, want whole ones (-1 is none), never an older one after a newer", seen)
	}
}
