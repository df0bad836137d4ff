package mesh

import (
	"cmp"
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
}

// picker decides which chunk to ask of whom. It has no goroutine, clock or socket: it is told what happened and
// when, and next answers with requests. claims.go holds the rule that spares a scarce source.
type picker struct {
	cfg     pickConfig
	cluster string
	seed    uint64 // of this node, for rendezvous order
	start   time.Time
	turned  time.Time // when a holder was last lost
	rng     *rand.Rand
	seeds   []uint64 // of each chunk, for rendezvous order
	missing []int    // chunks not here, shuffled once, so that ties in rarity fall differently on every node
	at      []int    // where a chunk is in missing, -1 when here
	asked   [][]flight
	peers   []*source // by ID
}

// flight is one copy of a chunk under way.
type flight struct {
	from  peer.ID
	since time.Time
}

// ask is a request to be sent.
type ask struct {
	to    peer.ID
	chunk int
}

// reason says why a request failed.
type reason int

const (
	reasonBusy   reason = iota // the peer has too many requests
	reasonAbsent               // the peer does not hold it
	reasonBad                  // the peer sent something else
	reasonLost                 // the stream broke
)

// maxCopies of a chunk are under way at most.
const maxCopies = 2

// sample bounds the candidates that are ranked by rarity at a time.
const sample = 512

func newPicker(cfg pickConfig, self peer.ID, cluster string, chunks []cid.Cid, now time.Time, seed uint64) *picker {
	p := &picker{
		cfg: cfg, cluster: cluster, seed: xxh3.HashString(string(self)), start: now, rng: rand.New(rand.NewPCG(seed, seed)),
		seeds: make([]uint64, len(chunks)), at: make([]int, len(chunks)), asked: make([][]flight, len(chunks)),
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
		s.heard, s.got = now, now
		s.delivered(now.Sub(p.askedAt(id, i, now)), p.cfg.maxWindow)
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

// backOff leaves a peer alone for a while, longer each time in a row.
func (p *picker) backOff(now time.Time, s *source) {
	s.strikes = min(s.strikes+1, 4)
	s.down = now.Add(time.Second << (s.strikes - 1))
	p.turned = now
}

// next returns the requests to send now. It wants to be called after every event and on every tick.
func (p *picker) next(now time.Time) []ask {
	p.expire(now)
	var asks []ask
	if p.anyFree(now) {
		for _, c := range p.candidates(now) {
			if s := p.best(now, c.chunk, c.scarce, ""); s != nil {
				asks = append(asks, p.send(now, s, c.chunk))
			}
		}
		asks = append(asks, p.repeats(now)...)
	}
	return asks
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

func (p *picker) anyFree(now time.Time) bool {
	return slices.ContainsFunc(p.peers, func(s *source) bool { return s.free(now) })
}

// candidate is a missing chunk that nobody has been asked for and that may be asked for now.
type candidate struct {
	chunk, holders int
	scarce         bool
}

// candidates returns askable chunks, scarce ones that are ours to fetch first, then rarest first.
func (p *picker) candidates(now time.Time) []candidate {
	var found []candidate
	turn := 0
	if len(p.missing) > 0 {
		turn = p.rng.IntN(len(p.missing))
	}
	for k := range p.missing {
		i := p.missing[(k+turn)%len(p.missing)]
		if len(p.asked[i]) > 0 {
			continue
		}
		holders, near := p.holders(now, i)
		scarce := near == 0 || holders == 1
		if holders == 0 || scarce && !p.mine(now, i) {
			continue
		}
		if found = append(found, candidate{i, holders, scarce}); len(found) == sample {
			break
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.holders, b.holders) })
	return found
}

// holders counts the peers that could deliver chunk i, and those of them that are near and do.
func (p *picker) holders(now time.Time, i int) (all, near int) {
	for _, s := range p.peers {
		if s.usable(now, i) {
			all++
			if p.near(s) && !p.sluggish(now, s) {
				near++
			}
		}
	}
	return all, near
}

// near tells whether s is cheap to ask: of this cluster, and not the trainer, whose uplink everybody shares.
func (p *picker) near(s *source) bool { return s.cluster == p.cluster && s.role != RoleTrainer }

// best returns the holder to ask for chunk i, nil when none has a slot free. A chunk that is not scarce is worth
// waiting for a near holder.
func (p *picker) best(now time.Time, i int, scarce bool, but peer.ID) *source {
	var best *source
	for _, s := range p.peers {
		if s.id == but || !s.usable(now, i) || !s.free(now) || !scarce && !p.near(s) {
			continue
		}
		if best == nil || p.prefer(now, s, best) < 0 {
			best = s
		}
	}
	return best
}

// prefer orders holders: those that deliver first, then this cluster, then whoever is not the trainer, then the
// least busy.
func (p *picker) prefer(now time.Time, a, b *source) int {
	return cmp.Or(
		first(!p.sluggish(now, a), !p.sluggish(now, b)),
		first(a.cluster == p.cluster, b.cluster == p.cluster),
		first(a.role != RoleTrainer, b.role != RoleTrainer),
		cmp.Compare(len(a.out), len(b.out)),
	)
}

// first orders true before false.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func (p *picker) send(now time.Time, s *source, i int) ask {
	s.out[i] = now
	p.asked[i] = append(p.asked[i], flight{s.id, now})
	return ask{s.id, i}
}

// repeats asks a second holder for chunks whose first one went quiet, once little else is left, and for chunks
// that have been under way for very long. A lively peer is trusted: a copy from a scarce source is not wasted.
func (p *picker) repeats(now time.Time) []ask {
	var asks []ask
	ending := len(p.missing) <= p.cfg.endgame
	for _, s := range p.peers {
		for _, i := range s.chunks() {
			if p.at[i] < 0 || len(p.asked[i]) >= maxCopies {
				continue
			}
			since := s.out[i]
			quiet := ending && (now.Sub(later(since, s.heard)) >= p.cfg.takeover || p.sluggish(now, s))
			if !quiet && now.Sub(since) < p.cfg.slow {
				continue
			}
			if other := p.best(now, i, true, s.id); other != nil {
				asks = append(asks, p.send(now, other, i))
			}
		}
	}
	return asks
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
