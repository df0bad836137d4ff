package mesh

import (
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"pgregory.net/rapid"
)

func exact(d time.Duration) time.Duration { return d }

func TestBackoffDoublesToALimit(t *testing.T) {
	b, at := newBackoff(exact), time.Unix(0, 0)
	const p = peer.ID("p")
	for _, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 15 * time.Second} {
		if !b.begin(p, at) {
			t.Fatalf("not dialled before a wait of %s", want)
		}
		b.ended(p, at)
		if b.begin(p, at.Add(want-1)) {
			t.Errorf("dialled before %s were over", want)
		}
		at = at.Add(want)
	}
	b.fresh(p)
	if !b.begin(p, at) {
		t.Error("a new address is not tried at once")
	}
	if b.begin(p, at.Add(time.Hour)) {
		t.Error("dialled twice at once")
	}
}

// A connection that holds is forgotten, one that breaks at once is not.
func TestBackoffForgetsWhoStays(t *testing.T) {
	b, at := newBackoff(exact), time.Unix(0, 0)
	const p = peer.ID("p")
	b.begin(p, at)
	b.ended(p, at)
	b.prune(nil, at.Add(firstRedial-1))
	if b.begin(p, at.Add(firstRedial-1)) {
		t.Error("dialled in a loop")
	}
	b.prune(setOf([]peer.ID{p}), at.Add(time.Minute))
	if b.peers[p] == nil {
		t.Error("a missing peer's failures are forgotten")
	}
	b.prune(nil, at.Add(firstRedial))
	if len(b.peers) != 0 {
		t.Error("a connected peer's failures are remembered")
	}
}

func TestBackoffRemembersOnlyWhoIsMissing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, at := newBackoff(exact), time.Unix(0, 0)
		missing := setOf([]peer.ID{"a", "b"})
		for range rapid.IntRange(0, 20).Draw(t, "dials") {
			p := peer.ID(rapid.StringMatching(`[a-d]`).Draw(t, "peer"))
			if b.begin(p, at) && rapid.Bool().Draw(t, "ends") {
				b.ended(p, at)
			}
		}
		b.prune(missing, at.Add(time.Hour))
		for p, r := range b.peers {
			if _, ok := missing[p]; !ok && !r.dialing {
				t.Fatalf("%s is remembered", p)
			}
		}
	})
}
