package mesh

import (
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"
)

// following knows which connected peers follow a run: those that answered a question about it.
type following struct {
	answered chan struct{} // closed at the first answer

	mu    sync.Mutex // guards peers
	peers map[peer.ID]struct{}
	first sync.Once
}

func newFollowing() *following {
	return &following{answered: make(chan struct{}), peers: make(map[peer.ID]struct{})}
}

// add notes that p follows the run.
func (f *following) add(p peer.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.peers[p] = struct{}{}
}

// told notes that what a peer knew has been taken in.
func (f *following) told() { f.first.Do(func() { close(f.answered) }) }

// drop forgets a peer that is gone.
func (f *following) drop(p peer.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.peers, p)
}

// list returns the peers, in no order.
func (f *following) list() []peer.ID {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := make([]peer.ID, 0, len(f.peers))
	for p := range f.peers {
		ids = append(ids, p)
	}
	return ids
}
