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
		b.failed(p, at)
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
	b.reached(p)
	if !b.begin(p, at) {
		t.Error("a peer that was reached is not dialled again")
	}
}

func TestBackoffRemembersOnlyWhoIsWanted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, at := newBackoff(exact), time.Unix(0, 0)
		wanted := setOf([]peer.ID{"a", "b"})
		dialing := 0
		for range rapid.IntRange(0, 20).Draw(t, "dials") {
			p := peer.ID(rapid.StringMatching(`[a-d]`).Draw(t, "peer"))
			if b.begin(p, at) && rapid.Bool().Draw(t, "fails") {
				b.failed(p, at)
			}
		}
		b.prune(wanted)
		for p, r := range b.peers {
			if _, ok := wanted[p]; !ok && !r.dialing {
				t.Fatalf("%s is remembered", p)
			}
			if r.dialing {
				dialing++
			}
		}
		if dialing > 4 {
			t.Fatalf("%d dials to four peers", dialing)
		}
	})
}
