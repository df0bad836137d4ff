package mesh

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/zeebo/xxh3"
)

const (
	busyPause = 100 * time.Millisecond // before a busy peer is asked again
	hollow    = 2                      // failures in a row after which what a peer says it holds is not to be had
	busyLimit = 4                      // busy answers in a row that make a peer count as no holder for a while
)

// source is what a picker knows of one peer.
type source struct {
	*acquaintance
	id      peer.ID
	role    Role
	cluster string
	seed    uint64 // for rendezvous order
	known   bool   // it has told what it holds
	has     bitmap
	claims  bool // it is fetching the same manifest

	heard time.Time // when bytes of a chunk last came from it
	got   time.Time // when the last of a chunk did

	window int
	run    int // deliveries since the window last changed
	out    map[int]time.Time
	pace   time.Duration // smoothed time from request to chunk
	gap    time.Duration // smoothed time between two chunks while any is owed

	busy   int // busy answers in a row
	paused time.Time
}

// join notes that a peer of this run is connected.
func (p *picker) join(now time.Time, id peer.ID, role Role, cluster string) {
	at, ok := slices.BinarySearchFunc(p.peers, id, bySourceID)
	if ok {
		return
	}
	p.peers = slices.Insert(p.peers, at, &source{
		acquaintance: p.meet(now, id), id: id, role: role, cluster: cluster, seed: xxh3.HashString(string(id)),
		has: newBitmap(len(p.at)), window: p.cfg.window, out: make(map[int]time.Time),
	})
}

func bySourceID(s *source, id peer.ID) int { return strings.Compare(string(s.id), string(id)) }

// leave lets a peer go; what was asked of it may be asked of others. One that leaves with something owed is not
// asked first thing when it comes back.
func (p *picker) leave(now time.Time, id peer.ID) {
	at, ok := slices.BinarySearchFunc(p.peers, id, bySourceID)
	if !ok {
		return
	}
	s := p.peers[at]
	if len(s.out) > 0 {
		p.backOff(now, s)
	}
	for _, i := range s.chunks() {
		p.release(id, i)
	}
	p.peers = slices.Delete(p.peers, at, at+1)
	p.lose(now, s)
}

// lose notes that s can be asked no longer. It matters only if s was of use: then those who waited for it, too, may
// take a moment to find another.
func (p *picker) lose(now time.Time, s *source) {
	if !s.got.IsZero() {
		p.turned = now
	}
}

func (p *picker) find(id peer.ID) *source {
	if at, ok := slices.BinarySearchFunc(p.peers, id, bySourceID); ok {
		return p.peers[at]
	}
	return nil
}

// haves takes all that a peer holds.
func (p *picker) haves(now time.Time, id peer.ID, all bitmap) {
	s := p.find(id)
	if s == nil {
		return
	}
	s.known = true
	p.heed(now, s.acquaintance, all)
	copy(s.has, all)
}

// gained notes that a peer holds chunk i besides.
func (p *picker) gained(now time.Time, id peer.ID, i int) {
	if s := p.find(id); s != nil {
		s.has.set(i)
		p.heedOne(now, s.acquaintance, i)
	}
}

// claim notes whether a peer is fetching the same manifest.
func (p *picker) claim(now time.Time, id peer.ID, fetching bool) {
	s := p.find(id)
	if s == nil {
		return
	}
	s.claims = fetching
	if fetching && !s.claimed {
		s.claimed = true
		s.hopeful(now)
	}
}

// heardFrom notes that some bytes of a chunk came from a peer.
func (p *picker) heardFrom(now time.Time, id peer.ID) {
	if s := p.find(id); s != nil {
		s.heard = now
	}
}

// usable tells whether s could deliver chunk i.
func (s *source) usable(now time.Time, i int) bool { return s.has.has(i) && !now.Before(s.down) }

// free tells whether s may be sent another request.
func (s *source) free(now time.Time) bool {
	return len(s.out) < s.window && !now.Before(s.paused) && !now.Before(s.down)
}

// sluggish tells whether s has delivered nothing for twice as long as is waited for silent peers, though asked.
// It may be slow or may be trickling on purpose: what it holds counts as far away until it delivers.
func (p *picker) sluggish(now time.Time, s *source) bool {
	oldest := now
	for _, since := range s.out {
		if since.Before(oldest) {
			oldest = since
		}
	}
	return now.Sub(later(oldest, s.got)) >= 2*p.cfg.takeover
}

// slow tells whether s delivers so rarely that others are to be asked beside it.
func (p *picker) slow(s *source) bool { return s.gap >= p.cfg.takeover/2 }

// chunks returns what s was asked for, in order.
func (s *source) chunks() []int { return slices.Sorted(maps.Keys(s.out)) }

// shrink halves the window after a failure.
func (s *source) shrink() {
	s.window = max(1, s.window/2)
	s.run = 0
}

// delivered widens the window by one for every full window that came well. Whatever was held against s is forgotten.
func (s *source) delivered(took, gap time.Duration, most int) {
	s.busy, s.strikes, s.down = 0, 0, time.Time{}
	s.pace = smooth(s.pace, took)
	s.gap = smooth(s.gap, gap)
	if s.run++; s.run >= s.window && s.window < most {
		s.window++
		s.run = 0
	}
}

// smooth moves an average towards a new value; zero is no average yet.
func smooth(average, value time.Duration) time.Duration {
	if average == 0 {
		return value
	}
	return average + (value-average)/8
}
