package main

import (
	"os"
	"testing"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// TestLateJoiners start from the base long after it: one knows the trainer, one only another rollout.
func TestLateJoiners(t *testing.T) {
	t.Parallel()
	states := steps(t, 2_000_000, 4)
	f := newFleet(t, states[0], 3)
	r := f.rollouts()
	f.start(f.trainer, r[0])
	var v api.PublishResult
	var coded uint64
	for _, s := range states[1:] {
		v = f.publish(s)
		coded += v.Coded
	}
	f.follow(v.VersionInfo, states[4], r[0])
	r[2].bootstrap = r[:1]
	f.start(r[1], r[2])
	f.follow(v.VersionInfo, states[4], r[1], r[2])
	for _, h := range r[1:] {
		s := h.now()
		if len(s.History) != 1 || s.History[0].Number != v.Number {
			t.Errorf("%s served %v on its way: every switch costs an engine a pause, one is enough", h.name, s.History)
		}
		if got := s.Counters["chunk_bytes_received"]; got < v.Coded || got > coded+coded/10 {
			t.Errorf("%s received %d bytes, want the %d of the last update and no more than the %d of all four", h.name, got, v.Coded, coded)
		}
	}
	// Whoever knew only one node has met the others, and follows like them.
	r[2].await("meet everybody", func(s api.Status) bool { return len(s.Peers) == 3 })
	back := f.publish(states[3])
	f.follow(back.VersionInfo, states[3], r...)
}

// TestRelay puts a relay between the trainer and a rollout that may not talk to each other.
func TestRelay(t *testing.T) {
	t.Parallel()
	states := steps(t, 2_000_000, 3)
	f := newFleet(t, states[0], 0)
	relay := f.add("relay", mesh.RoleRelay, f.trainer)
	rollout := f.add("rollout", mesh.RoleRollout, relay)
	f.trainer.members = []*host{relay}
	rollout.members = []*host{relay}
	f.start()
	var coded uint64
	var v api.PublishResult
	for _, s := range states[1:] {
		v = f.publish(s)
		coded += v.Coded
		f.follow(v.VersionInfo, s, rollout)
	}
	trainer, middle, end := f.trainer.now(), relay.now(), rollout.now()
	for _, sent := range []struct {
		how string
		got uint64
	}{
		{"trainer to relay", trainer.SentBytes["relay"]},
		{"relay to rollout", middle.SentBytes["rollout"]},
		{"received by the rollout", end.Counters["chunk_bytes_received"]},
	} {
		if sent.got < coded || sent.got > 2*coded {
			t.Errorf("%s: %d bytes for %d of code", sent.how, sent.got, coded)
		}
	}
	if n := trainer.SentBytes["rollout"]; n != 0 {
		t.Errorf("the trainer sent %d bytes to a rollout that it may not talk to", n)
	}
	for _, s := range []api.Status{trainer, end} {
		if len(s.Peers) != 1 || s.Peers[0].ID != relay.id.String() || s.Peers[0].Role != "relay" {
			t.Errorf("%s has peers %v, want only the relay", s.Role, s.Peers)
		}
	}
	if middle.Path != "" {
		t.Errorf("a relay claims weights in %s", middle.Path)
	}
}

// TestStranger has a valid key and knows everything else, but nobody lists it.
func TestStranger(t *testing.T) {
	t.Parallel()
	states := steps(t, 1_000_000, 2)
	f := newFleet(t, states[0], 1)
	rollout := f.rollouts()[0]
	f.trainer.members = []*host{f.trainer, rollout}
	rollout.members = f.trainer.members
	stranger := f.add("stranger", mesh.RoleRollout, f.trainer, rollout)
	f.start()
	v := f.publish(states[1])
	f.follow(v.VersionInfo, states[1], rollout)
	for _, h := range []*host{f.trainer, rollout} {
		h.await("refuse the stranger", func(s api.Status) bool { return s.Counters["peers_refused"] > 0 })
	}
	v = f.publish(states[2])
	f.follow(v.VersionInfo, states[2], rollout)
	if s := stranger.now(); s.Latest != nil || s.Served != nil || len(s.Peers) != 0 || s.Counters["chunk_bytes_received"] != 0 {
		t.Errorf("the stranger got in: %+v", s)
	}
}

// TestWrongBase gives one rollout another base checkpoint than the run's.
func TestWrongBase(t *testing.T) {
	t.Parallel()
	states := steps(t, 1_000_000, 2)
	f := newFleet(t, states[0], 2)
	good, bad := f.rollouts()[0], f.rollouts()[1]
	bad.base = states[2] // equal tensors, other values
	f.start()
	v := f.publish(states[1])
	f.follow(v.VersionInfo, states[1], good)
	s := bad.await("say that its base is wrong", func(s api.Status) bool {
		return s.State == api.StateError && s.Latest != nil && s.Latest.Number == v.Number
	})
	for _, want := range []string{"nothing on offer leads", "full copy", "base:"} {
		wantText(t, s.Error, want)
	}
	if s.Served != nil {
		t.Errorf("a rollout on a wrong base serves %v", s.Served)
	}
	if to, err := os.Readlink(bad.current()); err == nil {
		t.Errorf("current leads to %s, which is none of the run's", to)
	}
	v = f.publish(states[2])
	f.follow(v.VersionInfo, states[2], good, bad) // the run came to what it holds
}

// TestAwayForLong brings a rollout back when the deltas that it would need are no longer on offer one by one.
func TestAwayForLong(t *testing.T) {
	t.Parallel()
	states := steps(t, 1_000_000, 6)
	f := newFleet(t, states[0], 2)
	f.trainer.keep = 1
	here, away := f.rollouts()[0], f.rollouts()[1]
	f.start(f.trainer, here)
	var v api.PublishResult
	for _, s := range states[1:] {
		v = f.publish(s)
		f.follow(v.VersionInfo, s, here)
	}
	f.start(away)
	f.follow(v.VersionInfo, states[6], away)
	f.same(states[6], away)
}
