package mesh

import (
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Pauses before a silent peer is asked again.
const (
	firstReask = 2 * time.Second
	lastReask  = time.Minute
)

// askQueue says which peer is asked next. A peer waits once and is asked one question at a time, and one that stays
// silent is left alone for a while, longer each time in a row: so a few that never answer hold up no others.
type askQueue struct {
	ready chan struct{} // holds a token while somebody waits

	mu      sync.Mutex // guards what follows
	waiting []peer.ID
	peers   map[peer.ID]*inquiry // that wait, are being asked or were silent: no more than members
}

// inquiry is what an askQueue knows of one peer.
type inquiry struct {
	asked bool // a question is under way
	again bool // another is wanted
	pause time.Duration
	until time.Time // when the pause is over
}

func newAskQueue() *askQueue {
	return &askQueue{ready: make(chan struct{}, 1), peers: make(map[peer.ID]*inquiry)}
}

// add has p asked soon, unless it is about to be or is paused: the poll makes up for that. It never blocks.
func (q *askQueue) add(p peer.ID, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := q.peers[p]
	if i == nil {
		i = new(inquiry)
		q.peers[p] = i
	}
	if i.again || now.Before(i.until) {
		return
	}
	i.again = true
	if !i.asked {
		q.line(p)
	}
}

// line puts p at the end. It needs the lock.
func (q *askQueue) line(p peer.ID) {
	q.waiting = append(q.waiting, p)
	q.signal()
}

func (q *askQueue) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take returns whom to ask now; ended is to be called for each.
func (q *askQueue) take() (p peer.ID, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return "", false
	}
	p = q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	if len(q.waiting) > 0 {
		q.signal()
	}
	q.peers[p].asked, q.peers[p].again = true, false
	return p, true
}

// ended notes that a question to p is over, and whether p was silent.
func (q *askQueue) ended(p peer.ID, silent bool, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := q.peers[p]
	i.asked = false
	switch {
	case silent:
		i.pause = min(max(firstReask, 2*i.pause), lastReask)
		i.again, i.until = false, now.Add(i.pause)
	case i.again:
		i.pause, i.until = 0, time.Time{}
		q.line(p)
	default:
		delete(q.peers, p)
	}
}
