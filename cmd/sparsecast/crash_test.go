package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/node/api"
)

// TestRolloutIsKilled kills a rollout at a random moment of every update. What it serves stays a whole version, and
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
	phases := []string{api.StateFetching, api.StateApplying, api.StateReady}
	random := rand.New(rand.NewPCG(4, 2))
	caught := 0
	var last api.PublishResult
	for i, s := range states[1:] {
		last = f.publish(s)
		victim.await("come to the moment of its death", func(s api.Status) bool {
			return s.State == phases[i%len(phases)] || s.Served != nil && s.Served.Number == last.Number
		})
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond) // no phase is hit at its first instant only
		victim.kill()
		got := slices.Index(known, digest(t, victim.current()))
		if got < 0 || got > i+1 {
			t.Fatalf("killed in update %d: current holds no published version", i+1)
		}
		if got <= i {
			caught++
		}
		victim.start()
	}
	t.Logf("%d of %d kills came before the switch", caught, len(states)-1)
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
