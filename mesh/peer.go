package mesh

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// link is what this node shares with one connected peer: the control stream it writes (run), the one it reads
// (hear), the lanes it fetches over, and the streams it serves.
type link struct {
	x    *Exchange
	id   peer.ID
	ctx  context.Context // ends with the connection
	stop context.CancelFunc
	wake chan struct{} // capacity 1: there is something to write
	met  chan struct{} // closed at the first hello

	sent, received atomic.Uint64
	rtt            atomic.Int64  // nanoseconds
	life           atomic.Uint64 // grows with every sign of life

	mu      sync.Mutex // guards what follows
	hello   *Hello     // nil until heard
	in      network.Stream
	open    bool // the control stream is being written
	outbox  []control
	deaf    bool // the outbox overflowed
	ping    uint64
	pinged  time.Time
	subs    map[cid.Cid]*subscription
	lanes   []*lane
	serving int // streams
}

func newLink(x *Exchange, id peer.ID) *link {
	ctx, stop := context.WithCancel(context.Background()) // run ends it with Run
	return &link{
		x: x, id: id, ctx: ctx, stop: stop,
		wake: make(chan struct{}, 1), met: make(chan struct{}), subs: make(map[cid.Cid]*subscription),
	}
}

// run keeps a control stream open for as long as the peer is connected.
func (l *link) run() {
	defer l.x.drop(l)
	const first, most = 100 * time.Millisecond, 2 * time.Second
	for wait := first; l.ctx.Err() == nil && l.x.connected(l.id); wait = min(2*wait, most) {
		began := time.Now()
		err := l.speak()
		if l.ctx.Err() != nil {
			return
		}
		l.x.log.Debug().Stringer("peer", l.id).Err(err).Msg("control stream ended")
		if errors.Is(err, errDeaf) || errors.Is(err, errMute) {
			l.x.host.Network().ClosePeer(l.id)
			return
		}
		if time.Since(began) > most {
			wait = first
		}
		pause(l.ctx, wait)
	}
}

// pause sleeps unless ctx ends first.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// newStream opens a stream over the connection at hand, without dialling.
func (l *link) newStream(p protocol.ID) (network.Stream, error) {
	ctx, cancel := context.WithTimeout(network.WithNoDial(l.ctx, "peers are met, not sought"), l.x.cfg.Patience)
	defer cancel()
	return l.x.host.NewStream(ctx, l.id, p)
}

// rescan finds chunks that came into the store by another way than a download of this exchange.
func (l *link) rescan() {
	for id, sub := range l.openSubs() {
		chunks := sub.chunks
		if chunks == nil {
			chunks = l.x.chunksOf(id)
		}
		l.refresh(sub, chunks)
	}
}

func (l *link) heardHello() *Hello {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hello
}

func (l *link) info(h *Hello) PeerInfo {
	addr := ""
	if conns := l.x.host.Network().ConnsToPeer(l.id); len(conns) > 0 {
		addr = slices.MinFunc(conns, olderConn).RemoteMultiaddr().String()
	}
	return PeerInfo{
		ID: l.id, Role: h.Role, Cluster: h.Cluster, Runs: h.Runs, Addr: addr,
		SentBytes: l.sent.Load(), ReceivedBytes: l.received.Load(), RTT: time.Duration(l.rtt.Load()),
	}
}

func olderConn(a, b network.Conn) int { return a.Stat().Opened.Compare(b.Stat().Opened) }
