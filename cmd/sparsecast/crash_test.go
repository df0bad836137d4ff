package main

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/node/api"
)

// TestRolloutIsKilled ends a rollout at a random moment of every update. What it serves stays a whole version, and
// it catches up.
func TestRolloutIsKilled(t *testing.T) {
	t.Parallel()
	states := denseSteps(t, 4_000_000, 6)
	f := newFleet(t, states[0], 2)
	f.start()
	victim, witness := f.rollouts()[0], f.rollouts()[1]
	f.same(states[0], victim)
	var known []string
	for _, s := range states {
		known = append(known, digest(t, s))
	}
	phases := []string{api.StateFetching, api.StateApplying, "until it serves"}
	random := rand.New(rand.NewPCG(4, 2))
	caught := 0
	var last api.PublishResult
	for i, s := range states[1:] {
		last = f.publish(s)
		victim.await("come to the moment of its death", func(s api.Status) bool {
			return s.State == phases[i%len(phases)] || s.Served != nil && s.Served.Number == last.Number
		})
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond) // no phase is hit at its first instant only
		if i < len(phases) {
			victim.kill()
		} else {
			victim.stop() // a request to end may come at any moment too
		}
		got := slices.Index(known, digest(t, victim.current()))
		if got < 0 || got > i+1 {
			t.Fatalf("ended in update %d: current holds no published version", i+1)
		}
		if got <= i {
			caught++
		}
		victim.start()
	}
	t.Logf("%d of %d times it ended before the switch", caught, len(states)-1)
	f.follow(last.VersionInfo, states[len(states)-1], victim, witness)
}

// TestTrainerDiesAfterPublish leaves one rollout with the newest version and a dead trainer; others, who have never
// met the trainer, get it from there.
func TestTrainerDiesAfterPublish(t *testing.T) {
	t.Parallel()
	states := steps(t, 2_000_000, 2)
	f := newFleet(t, states[0], 3)
	r := f.rollouts()
	f.start(f.trainer, r[0])
	f.publish(states[1])
	v := f.publish(states[2])
	f.follow(v.VersionInfo, states[2], r[0])
	f.trainer.kill()
	r[1].bootstrap, r[2].bootstrap = r[:1], r[:1]
	f.start(r[1], r[2])
	f.follow(v.VersionInfo, states[2], r[1], r[2])
	if sent := r[0].now().SentBytes["rollout"]; sent < v.Coded {
		t.Errorf("the first rollout sent %d bytes to others, less than the %d of one update", sent, v.Coded)
	}
}

// TestTrainerRestarts kills the trainer and starts it again: it goes on in a new epoch, by deltas.
func TestTrainerRestarts(t *testing.T) {
	t.Parallel()
	states := steps(t, 2_000_000, 3)
	f := newFleet(t, states[0], 2)
	f.start()
	before := f.publish(states[1])
	f.trainer.kill()
	f.trainer.start()
	after := f.publish(states[2])
	if after.Epoch <= before.Epoch || after.Number != before.Number+1 {
		t.Errorf("version %d of epoch %d follows %d of %d", after.Number, after.Epoch, before.Number, before.Epoch)
	}
	wantDelta(t, after)
	f.follow(after.VersionInfo, states[2], f.rollouts()...)

	// A trainer that went back to an older checkpoint counts from there.
	f.trainer.kill()
	f.trainer.start()
	number := uint64(1)
	back, err := f.trainer.client.Publish(t.Context(), api.PublishRequest{Path: states[1], Number: &number})
	if err != nil {
		t.Fatal(err)
	}
	wantDelta(t, back)
	f.follow(back.VersionInfo, states[1], f.rollouts()...)
}

// wantDelta wants a version that was coded against the one before.
func wantDelta(t *testing.T, r api.PublishResult) {
	t.Helper()
	if r.Changed == 0 || r.Changed > r.Elements/2 || r.Coded > r.Dense/4 {
		t.Errorf("version %d: %d of %d elements, %d bytes of code for %d: a full copy where a delta would do",
			r.Number, r.Changed, r.Elements, r.Coded, r.Dense)
	}
}

// TestTrainerIsKilledWhilePublishing kills it with a publish under way. The version is out or it is not; the run goes on.
func TestTrainerIsKilledWhilePublishing(t *testing.T) {
	t.Parallel()
	states := denseSteps(t, 4_000_000, 5)
	f := newFleet(t, states[0], 1)
	f.start()
	random := rand.New(rand.NewPCG(8, 6))
	for i, s := range states[1:4] {
		before := f.trainer.newest()
		done := make(chan error, 1)
		client := f.trainer.client
		go func() {
			_, err := client.Publish(t.Context(), api.PublishRequest{Path: s})
			done <- err
		}()
		if i < 2 {
			time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond) // in the middle of coding
		} else {
			f.trainer.await("announce", func(s api.Status) bool { return *s.Latest != *before }) // and tell nobody here
		}
		f.trainer.kill()
		t.Logf("publish ended with: %v", <-done)
		f.trainer.start()
	}
	v := f.publish(states[4])
	wantFollowUp(t, v)
	f.follow(v.VersionInfo, states[4], f.rollouts()...)
}

// wantFollowUp wants a version whose code starts from an earlier one: nearly all changed is no full copy.
func wantFollowUp(t *testing.T, r api.PublishResult) {
	t.Helper()
	if r.Changed == r.Elements {
		t.Errorf("version %d: every element counts as changed, as in a full copy", r.Number)
	}
}

// TestTrainerLosesItsDisk starts the trainer again with its key and an empty disk. The base is all that it has, and
// what everybody else has too.
func TestTrainerLosesItsDisk(t *testing.T) {
	t.Parallel()
	states := steps(t, 1_000_000, 2)
	f := newFleet(t, states[0], 2)
	f.start()
	v := f.publish(states[1])
	f.follow(v.VersionInfo, states[1], f.rollouts()...)
	f.trainer.kill()
	if err := os.RemoveAll(f.trainer.data); err != nil {
		t.Fatal(err)
	}
	f.trainer.served = nil // nobody promises that an empty disk remembers
	f.trainer.start()
	v = f.publish(states[2])
	wantDelta(t, v)
	f.follow(v.VersionInfo, states[2], f.rollouts()...)
}
