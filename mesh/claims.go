package mesh

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
)

// A chunk is scarce for a cluster when one peer alone holds it, or when all that hold it are far away or the
// trainer. Then one of those that fetch it, its owner, asks for it, and the others wait until the owner says that it
// has it. Who owns a chunk needs no message: all claimants order themselves, relays first, by a hash of chunk and peer.
// The owner's place is taken only when neither it nor the source has shown a sign of life for a while, since a
// slow source must not be asked twice for being slow.

// chunkSeed is the part of a chunk in the rendezvous order. All nodes must compute it alike.
func chunkSeed(c cid.Cid) uint64 {
	d, err := delta.Digest(c)
	if err != nil {
		return 0 // a manifest holds no such ID; an equal order for all would still be an order
	}
	return binary.LittleEndian.Uint64(d)
}

// rank places a peer in the rendezvous order of a chunk (splitmix64's finaliser); the lowest owns it.
func rank(peerSeed, chunkSeed uint64) uint64 {
	z := peerSeed ^ chunkSeed
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// mine tells whether the scarce chunk i is for this node to ask for.
func (p *picker) mine(now time.Time, i int) bool {
	for _, s := range p.peers {
		if s.cluster != p.cluster || s.has.has(i) {
			continue
		}
		if p.mayHold(now, s) {
			return false
		}
		if p.rival(now, s, i) {
			return false
		}
	}
	return true
}

// leads tells whether this node comes first for chunk i even among those that hold it. Where all near holders are slow,
// this one alone may ask a far one: in a crowd everybody is slow, and a source must not be asked by each in turn.
func (p *picker) leads(now time.Time, i int) bool {
	return !slices.ContainsFunc(p.peers, func(s *source) bool { return s.cluster == p.cluster && p.rival(now, s, i) })
}

// rival tells whether chunk i is for s to ask for rather than for this node.
func (p *picker) rival(now time.Time, s *source, i int) bool {
	return p.claimant(now, s) && p.precedes(s, i) && !p.silent(now, s, i)
}

// precedes tells whether s comes before this node in the order of claimants of chunk i. Relays come first: they are
// there to reach what rollouts may not, and a claim of one that cannot reach a holder only costs time.
func (p *picker) precedes(s *source, i int) bool {
	if relay := s.role == RoleRelay; relay != p.cfg.relay {
		return relay
	}
	return rank(s.seed, p.seeds[i]) < rank(p.seed, p.seeds[i])
}

// fresh tells whether s joined, or the download began, so lately that s deserves the benefit of the doubt.
func (p *picker) fresh(now time.Time, s *source) bool {
	return now.Sub(later(p.start, s.joined)) < p.cfg.presume
}

// mayHold tells whether s has yet to say what it holds, and it is worth waiting for that.
func (p *picker) mayHold(now time.Time, s *source) bool {
	return p.near(s) && !s.known && p.fresh(now, s)
}

// claimant tells whether s fetches this manifest, or is about to as far as this node can know.
func (p *picker) claimant(now time.Time, s *source) bool {
	return s.claims || s.role != RoleTrainer && p.fresh(now, s)
}

// silent tells whether chunk i need no longer be left to its owner s. Once passed over, an owner stays so until it
// has news, or every chunk that is taken over in its place would make the source look lively and the rest wait.
func (p *picker) silent(now time.Time, s *source, i int) bool {
	if !s.lapsed {
		waited := now.Sub(later(later(s.news, s.joined), later(p.start, p.turned)))
		heard, pace := p.sign(now, i)
		patience := max(p.cfg.takeover, min(2*pace, 5*p.cfg.takeover))
		s.lapsed = waited >= 10*patience || waited >= patience && now.Sub(heard) >= patience
	}
	return s.lapsed
}

// sign returns when a holder of chunk i last showed a sign of life, and the slowest pace among them. One that owes
// this node something counts as alive until that is given up: to ask it again would only lengthen its queue.
func (p *picker) sign(now time.Time, i int) (heard time.Time, pace time.Duration) {
	for _, s := range p.peers {
		if !s.usable(now, i) {
			continue
		}
		heard, pace = later(heard, s.heard), max(pace, s.pace)
		if len(s.out) > 0 {
			heard = now
		}
	}
	return heard, pace
}
