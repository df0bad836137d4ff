package mesh

import (
	"cmp"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// ask is a request to be sent.
type ask struct {
	to    peer.ID
	chunk int
}

// maxCopies of a chunk are under way at most.
const maxCopies = 2

// sample bounds the candidates that are ranked by rarity at a time.
const sample = 512

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
		holders, near, quick := p.holders(now, i)
		scarce := near == 0 || holders == 1
		if holders == 0 || scarce && !p.mine(now, i) {
			continue
		}
		scarce = scarce || quick == 0 && p.leads(now, i)
		if found = append(found, candidate{i, holders, scarce}); len(found) == sample {
			break
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.holders, b.holders) })
	return found
}

// holders counts the peers that could deliver chunk i, those of them that are near and do, and those of these that
// are not slow.
func (p *picker) holders(now time.Time, i int) (all, near, quick int) {
	for _, s := range p.peers {
		if !s.usable(now, i) {
			continue
		}
		all++
		if p.near(s) && !p.sluggish(now, s) {
			near++
			if !p.slow(s) {
				quick++
			}
		}
	}
	return all, near, quick
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
		first(!p.slow(a), !p.slow(b)),
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
