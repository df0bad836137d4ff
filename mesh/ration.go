package mesh

import (
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/time/rate"
)

// ration holds each peer to a rate of its own, so that one peer's flood keeps no other out.
type ration struct {
	each  rate.Limit // a second
	burst int        // at once

	mu    sync.Mutex // guards peers
	peers map[peer.ID]*rate.Limiter
}

func newRation(each rate.Limit, burst int) *ration {
	return &ration{each: each, burst: burst, peers: make(map[peer.ID]*rate.Limiter)}
}

// allow tells whether p keeps within its rate with one more.
func (r *ration) allow(p peer.ID, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.peers[p]
	if l == nil {
		l = rate.NewLimiter(r.each, r.burst)
		r.forgetIdle(now)
		r.peers[p] = l
	}
	return l.AllowN(now, 1)
}

// forgetIdle drops limiters that are full again, and so equal to new ones, once there are many. It needs the lock.
func (r *ration) forgetIdle(now time.Time) {
	if len(r.peers) < maxConns {
		return
	}
	for p, l := range r.peers {
		if l.TokensAt(now) >= float64(r.burst) {
			delete(r.peers, p)
		}
	}
}
