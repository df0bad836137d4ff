package main

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// rots are what a bad disk makes of a file. Size and times tell nothing where the disk would not have told.
var rots = map[string]func(b []byte) []byte{
	"flipped":   func(b []byte) []byte { b[len(b)*3/4] ^= 0x10; return b },
	"truncated": func(b []byte) []byte { return b[:len(b)/2] },
	"emptied":   func([]byte) []byte { return nil },
}

// rotsToTry are those of rots that this run of the tests has time for.
func rotsToTry() []string {
	if testing.Short() {
		return []string{"flipped"}
	}
	return slices.Sorted(maps.Keys(rots))
}

// rot spoils a file behind everybody's back, in place.
func rot(t *testing.T, path, how string) {
	t.Helper()
	if err := spoil(path, how); err != nil {
		t.Fatal(err)
	}
}

// spoil is rot. A file that goes meanwhile stays away.
func spoil(path, how string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	bad := rots[how](b)
	if _, err := f.WriteAt(bad, 0); err != nil {
		return err
	}
	return errors.Join(f.Truncate(int64(len(bad))), os.Chtimes(path, info.ModTime(), info.ModTime()))
}

// rotBlocks spoils every block that a host has: schema, manifests and chunks. A node that runs may put and remove some
// meanwhile.
func rotBlocks(t *testing.T, h *host, how string) {
	t.Helper()
	count := 0
	err := filepath.WalkDir(filepath.Join(h.data, "blocks"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if err = spoil(path, how); err == nil {
				count++
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil || count < 3 {
		t.Fatalf("%s has %d blocks, want a schema, a manifest and a chunk at least: %v", h.name, count, err)
	}
}

// whileRunning and whileDown spoil things under a node, and have it running after.
func whileRunning(_ *host, spoil func()) { spoil() }

func whileDown(h *host, spoil func()) {
	h.kill()
	spoil()
	h.start()
}

// everyRot runs a test in every way and at every moment of a rot.
func everyRot(t *testing.T, f func(t *testing.T, how string, at func(h *host, spoil func()))) {
	for _, how := range rotsToTry() {
		for when, at := range map[string]func(h *host, spoil func()){"running": whileRunning, "down": whileDown} {
			t.Run(how+" while "+when, func(t *testing.T) {
				t.Parallel()
				f(t, how, at)
			})
		}
	}
}

// TestBlocksRot spoils all blocks of one host after the other. Late joiners get what they need elsewhere, and the run
// goes on.
func TestBlocksRot(t *testing.T) {
	t.Parallel()
	everyRot(t, func(t *testing.T, how string, at func(h *host, spoil func())) {
		s := newSettled(t, 1_000_000, 5, 1, nil)
		for _, h := range s.hosts {
			at(h, func() { rotBlocks(t, h, how) })
			s.goOn()
		}
		late := s.add("late", mesh.RoleRollout, s.relay)
		s.joined(late)
	})
}

// joined starts a host that nobody knew. The run goes on until it serves what all others do: a block that is lost
// everywhere is noticed when it is asked for, and made good by the next version.
func (s *settled) joined(late *host) {
	s.t.Helper()
	for _, h := range s.hosts {
		h.members = s.hosts
		h.configure(s.trainer.id)
	}
	late.start()
	var v api.VersionInfo
	late.await("serve what all others do", func(st api.Status) bool {
		if st.State == api.StateReady && st.Served != nil && v.Number > 0 && st.Served.Number >= v.Number {
			return true
		}
		if st.Latest != nil && st.Latest.Number >= v.Number {
			v = s.publish(s.newest()).VersionInfo
		}
		return false
	})
	s.same(s.newest(), append(s.rollouts(), late)...)
}

// TestSlotsRot spoils a slot of a trainer or a rollout without a trace in its times. What comes next is whole.
func TestSlotsRot(t *testing.T) {
	t.Parallel()
	everyRot(t, func(t *testing.T, how string, at func(h *host, spoil func())) {
		s := newSettled(t, 1_000_000, 10, 2, nil)
		s.goOn() // now both slots are full
		for _, h := range []*host{s.trainer, s.rollouts()[0]} {
			for _, name := range []string{"a", "b"} {
				at(h, func() { rot(t, filepath.Join(h.data, "slots", name, "model.safetensors"), how) })
				s.goOnAtLast()
				s.goOn()
			}
		}
	})
}

// goOnAtLast is goOn where the first publish may find that the trainer's own copy is spoiled. It says to publish again.
func (s *settled) goOnAtLast() {
	s.t.Helper()
	if _, err := s.trainer.client.Publish(s.t.Context(), api.PublishRequest{Path: s.states[s.next]}); err != nil {
		wantText(s.t, err.Error(), "nothing published")
		wantText(s.t, err.Error(), "publish again")
	}
	s.goOn() // no change, if the first one went through
}

// TestBaseRots spoils the base of a rollout or the trainer before the first version.
func TestBaseRots(t *testing.T) {
	t.Parallel()
	for _, role := range []mesh.Role{mesh.RoleRollout, mesh.RoleTrainer} {
		t.Run(string(role), func(t *testing.T) {
			t.Parallel()
			states := steps(t, 1_000_000, 3)
			f := newFleet(t, states[0], 2)
			sick, other := f.rollouts()[0], f.rollouts()[1]
			if role == mesh.RoleTrainer {
				sick = f.trainer
			}
			sick.base = copyOf(t, states[0])
			f.start()
			f.follow(*f.trainer.newest(), states[0], f.rollouts()...)
			rot(t, sick.base, "flipped")
			s := &settled{fleet: f, states: states, next: 1}
			if role == mesh.RoleTrainer {
				s.goOnAtTrainer()
				return
			}
			v := s.publishNext()
			f.follow(v, states[1], other)
			sick.await("say that its base is of no use", func(st api.Status) bool {
				return st.State == api.StateError && containsAll(st.Error, []string{"nothing on offer leads", "--full", "base:"})
			})
			full, err := f.trainer.client.Publish(t.Context(), api.PublishRequest{Path: states[2], Full: true}) // as it says
			if err != nil {
				t.Fatal(err)
			}
			f.follow(full.VersionInfo, states[2], f.rollouts()...)
		})
	}
}

// goOnAtTrainer publishes from a spoiled base: at the second try at the latest, and as it says.
func (s *settled) goOnAtTrainer() {
	s.t.Helper()
	_, err := s.trainer.client.Publish(s.t.Context(), api.PublishRequest{Path: s.states[1]})
	if err != nil {
		wantText(s.t, err.Error(), "nothing published")
		wantText(s.t, err.Error(), "publish again")
	}
	v := s.publishNext()
	s.follow(v, s.newest(), s.rollouts()...)
	v = s.publishNext()
	s.follow(v, s.newest(), s.rollouts()...)
}

// TestBaseIsMended gives a rollout its base back, which takes a restart.
func TestBaseIsMended(t *testing.T) {
	t.Parallel()
	states := steps(t, 1_000_000, 2)
	f := newFleet(t, states[0], 1)
	h := f.rollouts()[0]
	h.base = copyOf(t, states[0])
	f.start()
	f.follow(*f.trainer.newest(), states[0], h)
	rot(t, h.base, "truncated")
	v := f.publish(states[1])
	h.await("say that its base is of no use", func(st api.Status) bool { return st.State == api.StateError })
	if err := os.Rename(copyOf(t, states[0]), h.base); err != nil {
		t.Fatal(err)
	}
	h.stop()
	h.start()
	f.follow(v.VersionInfo, states[1], h)
}

// TestNotesRot spoils what nodes note for their next start. A ledger that cannot be trusted stops the node, which says
// what to do; all else is found out anew.
func TestNotesRot(t *testing.T) {
	t.Parallel()
	for _, how := range rotsToTry() {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := newSettled(t, 1_000_000, 8, 1, nil)
			rollout := s.rollouts()[0]
			for _, h := range []*host{rollout, s.relay} {
				for _, name := range []string{"head.signed", "catalogue.signed"} {
					ledger := s.noted(h, name)
					rot(t, ledger, how) // a running node does not read it
					s.goOn()
					h.kill()
					rot(t, ledger, how)
					refusesToStart(t, h, name, "delete it")
					if err := os.Remove(ledger); err != nil {
						t.Fatal(err)
					}
					h.start()
					s.relayed(s.trainer.newest())
					s.follow(*s.trainer.newest(), s.newest(), rollout)
				}
			}
			for _, name := range []string{"served.json", "a.json", "b.json", "base.json"} {
				rollout.kill()
				rot(t, s.noted(rollout, name), how)
				rollout.start()
				s.follow(*s.trainer.newest(), s.newest(), rollout)
			}
			s.goOn()
		})
	}
}

// noted finds a note of a node by its name: where it lies may change.
func (s *settled) noted(h *host, name string) (found string) {
	s.t.Helper()
	err := filepath.WalkDir(h.data, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Base(path) == name {
			found = path
		}
		return err
	})
	if err != nil || found == "" {
		s.t.Fatalf("%s has no %s: %v", h.name, name, err)
	}
	return found
}

func copyOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(path), ".safetensors")+"-copy.safetensors")
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}
