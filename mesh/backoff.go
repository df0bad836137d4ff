package mesh

import (
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Waits between two dials of one peer. libp2p's own backoff grows to five minutes, too long for a worker that is
// merely restarting.
const (
	firstRedial = 500 * time.Millisecond
	lastRedial  = 15 * time.Second
)

// backoff remembers when each unreachable peer may be dialled again. It is plain state: the caller brings the time.
type backoff struct {
	peers  map[peer.ID]*retry
	jitter func(time.Duration) time.Duration
}

type retry struct {
	wait    time.Duration
	next    time.Time
	dialing bool
}

func newBackoff(jitter func(time.Duration) time.Duration) *backoff {
	return &backoff{peers: make(map[peer.ID]*retry), jitter: jitter}
}

// begin reports whether p may be dialled now, and if so takes it that a dial is under way until failed or reached.
func (b *backoff) begin(p peer.ID, now time.Time) bool {
	r := b.peers[p]
	if r == nil {
		r = &retry{}
		b.peers[p] = r
	}
	if r.dialing || now.Before(r.next) {
		return false
	}
	r.dialing = true
	return true
}

// failed puts the next dial off, twice as long as the last time.
func (b *backoff) failed(p peer.ID, now time.Time) {
	r := b.peers[p]
	if r == nil {
		return
	}
	r.dialing = false
	r.wait = min(max(firstRedial, 2*r.wait), lastRedial)
	r.next = now.Add(b.jitter(r.wait))
}

// reached forgets the failures of p.
func (b *backoff) reached(p peer.ID) { delete(b.peers, p) }

// fresh lets p be dialled at once: it has a new address.
func (b *backoff) fresh(p peer.ID) {
	if r := b.peers[p]; r != nil {
		r.wait, r.next = 0, time.Time{}
	}
}

// prune forgets peers that are no longer wanted, except while a dial is under way.
func (b *backoff) prune(wanted map[peer.ID]struct{}) {
	for p, r := range b.peers {
		if _, ok := wanted[p]; !ok && !r.dialing {
			delete(b.peers, p)
		}
	}
}
