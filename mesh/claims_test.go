package mesh

import (
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// claimants returns the pickers of some rollouts of one cluster that fetch the same n chunks from one trainer, each
// knowing all others.
func claimants(n int, now time.Time, ids ...peer.ID) map[peer.ID]*picker {
	chunks := testChunks(n)
	pickers := make(map[peer.ID]*picker)
	for _, id := range ids {
		p := newPicker(testPicking, id, "a", chunks, now, uint64(len(pickers)))
		p.join(now, "trainer", RoleTrainer, "a")
		for i := range n {
			p.gained(now, "trainer", i)
		}
		for _, other := range ids {
			if other != id {
				p.join(now, other, RoleRollout, "a")
				p.haves(now, other, newBitmap(n))
				p.claim(now, other, true)
			}
		}
		pickers[id] = p
	}
	return pickers
}

// drain answers everything that p asks for at one moment and returns the chunks.
func drain(p *picker, now time.Time) []int {
	var got []int
	for asks := p.next(now); len(asks) > 0; asks = p.next(now) {
		for _, a := range asks {
			p.arrived(now, a.to, a.chunk)
			p.hold(a.chunk)
			got = append(got, a.chunk)
		}
	}
	return got
}

func TestScarceChunksAreSharedOut(t *testing.T) {
	now := time.UnixMilli(0)
	var all []int
	for id, p := range claimants(64, now, "p", "q", "r", "s") {
		got := drain(p, now)
		if len(got) < 4 || len(got) > 32 {
			t.Errorf("%s owns %d of 64 chunks, want about 16", id, len(got))
		}
		all = append(all, got...)
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != 64 || len(all) != 64 {
		t.Errorf("the trainer was asked for %v, want each chunk once", all)
	}
}

func TestSilentOwnersAreReplaced(t *testing.T) {
	now := time.UnixMilli(0)
	p := claimants(32, now, "p", "q")["p"]
	own := len(drain(p, now))
	later := now.Add(testPicking.takeover - time.Millisecond)
	if early := drain(p, later); len(early) > 0 {
		t.Errorf("took over %v before its time", early)
	}
	later = now.Add(testPicking.takeover)
	if rest := drain(p, later); len(rest) != 32-own || !p.done() {
		t.Errorf("took over %d chunks of %d", len(rest), 32-own)
	}
}

// A source that is slow for everybody must not be asked twice.
func TestOwnersAreNotReplacedWhileTheSourceTrickles(t *testing.T) {
	now := time.UnixMilli(0)
	p := claimants(32, now, "p", "q")["p"]
	drain(p, now)
	for range 5 {
		now = now.Add(testPicking.takeover)
		p.heardFrom(now, "trainer")
		if got := drain(p, now); len(got) > 0 {
			t.Fatalf("took over %v from an owner that waits for the same source", got)
		}
	}
}

func TestFollowersCountAsClaimantsForAMoment(t *testing.T) {
	now := time.UnixMilli(0)
	p := newPicker(testPicking, "p", "a", testChunks(32), now, 1)
	p.join(now, "trainer", RoleTrainer, "a")
	p.join(now, "q", RoleRollout, "a")
	for i := range 32 {
		p.gained(now, "trainer", i)
	}
	if got := drain(p, now); len(got) > 0 {
		t.Errorf("asked for %v before q said what it holds", got)
	}
	p.haves(now, "q", newBitmap(32))
	if got := drain(p, now); len(got) == 0 || len(got) == 32 {
		t.Errorf("asked for %d of 32 chunks while q may be about to fetch, too", len(got))
	}
	drain(p, now.Add(testPicking.presume))
	if !p.done() {
		t.Errorf("%d chunks are left to q, which does not fetch", len(p.missing))
	}
}

// A rollout may not be able to reach the holder, so a relay neither waits for one nor is anticipated by one.
func TestRelaysGoFirst(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	chunks := testChunks(16)
	ask := func(relay bool, other Role) int {
		cfg := testPicking
		cfg.relay, cfg.window = relay, len(chunks)
		p := newPicker(cfg, "self", "a", chunks, now, 1)
		p.join(now, "trainer", RoleTrainer, "a")
		all := newBitmap(len(chunks))
		for i := range chunks {
			all.set(i)
		}
		p.haves(now, "trainer", all)
		p.join(now, "other", other, "a")
		p.haves(now, "other", newBitmap(len(chunks)))
		p.claim(now, "other", true)
		return len(p.next(now))
	}
	if n := ask(true, RoleRollout); n != len(chunks) {
		t.Errorf("a relay beside a rollout asks for %d chunks of %d", n, len(chunks))
	}
	if n := ask(false, RoleRelay); n != 0 {
		t.Errorf("a rollout beside a relay asks for %d chunks", n)
	}
	if n := ask(false, RoleRollout); n == 0 || n == len(chunks) {
		t.Errorf("a rollout beside another asks for %d chunks of %d", n, len(chunks))
	}
	if n := ask(true, RoleRelay); n == 0 || n == len(chunks) {
		t.Errorf("a relay beside another asks for %d chunks of %d", n, len(chunks))
	}
}

// Only what a peer never told before, and what is missing here, is a sign that it gets on.
func TestOldNewsDelayNoTakeover(t *testing.T) {
	for name, news := range map[string]func(p *picker, now time.Time){
		"nothing, one": func(p *picker, now time.Time) {
			one := newBitmap(32)
			one.set(0)
			p.haves(now, "q", newBitmap(32))
			p.haves(now, "q", one)
		},
		"connecting anew": func(p *picker, now time.Time) {
			p.leave(now, "q")
			p.join(now, "q", RoleRollout, "a")
			p.haves(now, "q", newBitmap(32))
			p.claim(now, "q", true)
		},
		"what is here": func(p *picker, now time.Time) {
			for i := range 32 {
				if p.at[i] < 0 && !p.find("q").told.has(i) {
					p.gained(now, "q", i)
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.UnixMilli(1_700_000_000_000)
			p := claimants(32, now, "p", "q")["p"]
			for range 4 {
				drain(p, now)
				now = now.Add(testPicking.takeover * 7 / 10)
				news(p, now)
			}
			if drain(p, now); !p.done() {
				t.Errorf("%d chunks are left to one that has told nothing new", len(p.missing))
			}
		})
	}
}
