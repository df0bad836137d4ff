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

// backoff remembers when each missing peer may be dialled again. It is plain state: the caller brings the time.
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

// begin reports whether p may be dialled now, and if so takes it that a dial is under way until ended.
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

// ended puts the next dial off, twice as long as the last time, whether or not the peer was reached: one that hangs up
// at once, as a node does on a peer it has banned, must not be dialled in a loop.
func (b *backoff) ended(p peer.ID, now time.Time) {
	r := b.peers[p]
	if r == nil {
		return
	}
	r.dialing = false
	r.wait = min(max(firstRedial, 2*r.wait), lastRedial)
	r.next = now.Add(b.jitter(r.wait))
}

// fresh lets p be dialled at once: it has a new address.
func (b *backoff) fresh(p peer.ID) {
	if r := b.peers[p]; r != nil {
		r.wait, r.next = 0, time.Time{}
	}
}

// prune forgets peers that are not missing, once their wait is over.
func (b *backoff) prune(missing map[peer.ID]struct{}, now time.Time) {
	for p, r := range b.peers {
		if _, ok := missing[p]; !ok && !r.dialing && !now.Before(r.next) {
			delete(b.peers, p)
		}
	}
}
