package mesh

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/zeebo/xxh3"
)

// pickConfig holds the picker's patience and appetite.
type pickConfig struct {
	window, maxWindow int           // outstanding requests to one peer: at first, at most
	takeover          time.Duration // silence after which an owner's or a holder's place is taken by the next
	stall             time.Duration // silence after which a peer's requests go elsewhere
	slow              time.Duration // age at which a request may be repeated elsewhere however lively the peer is
	presume           time.Duration // how long a follower that has not said so counts as fetching, too
	endgame           int           // missing chunks at which repeating a request begins
	relay             bool          // this node is one
}

// picker decides which chunk to ask of whom. It has no goroutine, clock or socket: it is told what happened and
// when, and next answers with requests. claims.go holds the rule that spares a scarce source.
type picker struct {
	cfg     pickConfig
	cluster string
	seed    uint64 // of this node, for rendezvous order
	start   time.Time
	turned  time.Time // when a holder that had delivered was last lost
	rng     *rand.Rand
	seeds   []uint64 // of each chunk, for rendezvous order
	missing []int    // chunks not here, shuffled once, so that ties in rarity fall differently on every node
	at      []int    // where a chunk is in missing, -1 when here
	asked   [][]flight
	peers   []*source // by ID
	met     map[peer.ID]*acquaintance
}

// flight is one copy of a chunk under way.
type flight struct {
	from  peer.ID
	since time.Time
}

// reason says why a request failed.
type reason int

const (
	reasonBusy   reason = iota // the peer has too many requests
	reasonAbsent               // the peer does not hold it
	reasonBad                  // the peer sent something else
	reasonLost                 // the stream broke
)

func newPicker(cfg pickConfig, self peer.ID, cluster string, chunks []cid.Cid, now time.Time, seed uint64) *picker {
	p := &picker{
		cfg: cfg, cluster: cluster, seed: xxh3.HashString(string(self)), start: now, rng: rand.New(rand.NewPCG(seed, seed)),
		seeds: make([]uint64, len(chunks)), at: make([]int, len(chunks)), asked: make([][]flight, len(chunks)),
		met: make(map[peer.ID]*acquaintance),
	}
	p.missing = p.rng.Perm(len(chunks))
	for place, c := range p.missing {
		p.at[c] = place
	}
	for i, c := range chunks {
		p.seeds[i] = chunkSeed(c)
	}
	return p
}

// hold notes that chunk i is here, wherever it came from.
func (p *picker) hold(i int) {
	place := p.at[i]
	if place < 0 {
		return
	}
	last := len(p.missing) - 1
	moved := p.missing[last]
	p.missing[place], p.at[moved] = moved, place
	p.missing, p.at[i] = p.missing[:last], -1
}

func (p *picker) done() bool { return len(p.missing) == 0 }

// failed notes that a request ended without its chunk.
func (p *picker) failed(now time.Time, id peer.ID, i int, why reason) {
	s := p.find(id)
	if s == nil {
		return
	}
	p.release(id, i)
	s.shrink()
	switch why {
	case reasonAbsent:
		s.has.clear(i)
		s.denied.set(i)
	case reasonBad:
		s.has.clear(i)
		p.backOff(now, s)
	case reasonLost:
		p.backOff(now, s)
	case reasonBusy:
		s.paused = now.Add(busyPause)
		if s.busy++; s.busy >= busyLimit {
			p.backOff(now, s)
		}
	}
}

// arrived notes that a peer delivered chunk i, which hold is told of apart.
func (p *picker) arrived(now time.Time, id peer.ID, i int) {
	if s := p.find(id); s != nil {
		asked := p.askedAt(id, i, now)
		s.delivered(now.Sub(asked), now.Sub(later(asked, s.got)), p.cfg.maxWindow)
		s.heard, s.got = now, now
	}
	p.release(id, i)
}

// release ends the flight of chunk i from a peer, if there is one.
func (p *picker) release(id peer.ID, i int) {
	p.asked[i] = slices.DeleteFunc(p.asked[i], func(f flight) bool { return f.from == id })
	if s := p.find(id); s != nil {
		delete(s.out, i)
	}
}

func (p *picker) askedAt(id peer.ID, i int, now time.Time) time.Time {
	for _, f := range p.asked[i] {
		if f.from == id {
			return f.since
		}
	}
	return now
}

// backOff leaves a peer alone for a while, longer each time in a row. All that breaks with one stream counts once.
func (p *picker) backOff(now time.Time, s *source) {
	if now.Before(s.down) {
		return
	}
	s.strikes = min(s.strikes+1, 4)
	s.down = now.Add(time.Second << (s.strikes - 1))
	p.lose(now, s)
}

// expire takes its requests from a peer that has been silent for too long.
func (p *picker) expire(now time.Time) {
	for _, s := range p.peers {
		stalled := false
		for i, since := range s.out {
			quiet := now.Sub(later(since, s.heard)) >= p.cfg.stall
			if quiet || now.Sub(since) >= 2*p.cfg.slow {
				p.release(s.id, i)
				stalled = true
			}
		}
		if stalled {
			s.window = 1
			p.backOff(now, s)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
