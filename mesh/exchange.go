package mesh

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"
)

// Hello is what a node tells every peer it meets.
type Hello struct {
	Role    Role
	Cluster string   // nodes with fast links between them share one
	Runs    []string // ascending; blocks are exchanged between nodes that share one
}

// PeerInfo describes a connected peer that has said hello, for status pages.
type PeerInfo struct {
	ID            peer.ID       `json:"id"`
	Role          Role          `json:"role"`
	Cluster       string        `json:"cluster"`
	Runs          []string      `json:"runs"`
	Addr          string        `json:"addr"`
	SentBytes     uint64        `json:"sent_bytes"`     // of blocks, since it connected
	ReceivedBytes uint64        `json:"received_bytes"` // of good blocks, since it connected
	RTT           time.Duration `json:"rtt"`            // of the last ping, in nanoseconds; zero before the first
}

// Exchange fetches blocks from peers and serves them to peers that share a run. It lives while Run runs: before and
// after, Fetch and Block find nobody to ask.
type Exchange struct {
	crew  // every goroutine but the callers'
	host  host.Host
	self  Hello
	store Store
	cfg   ExchangeConfig
	stats *Stats
	log   zerolog.Logger

	uploads chan struct{}           // one token for every block being sent
	sentTo  map[Role]*atomic.Uint64 // never changed
	lacks   lacks
	foreign *recall // peers of other runs that were warned of

	mu      sync.Mutex // guards what follows; taken before a link's
	links   map[peer.ID]*link
	banned  map[peer.ID]time.Time // until when
	fetches map[cid.Cid]*fetch
	lists   map[cid.Cid][]cid.Cid // chunks of manifests seen lately; nil for blocks that are no manifest
	met     chan struct{}         // closed and replaced whenever a peer says hello
}

// NewExchange returns an Exchange that keeps what it fetches in store and serves what store holds.
func NewExchange(h host.Host, self Hello, store Store, cfg ExchangeConfig, stats *Stats, log zerolog.Logger) *Exchange {
	cfg = cfg.filled()
	return &Exchange{
		host: h, self: self, store: store, cfg: cfg, stats: stats, log: log,
		uploads: make(chan struct{}, cfg.Uploads),
		sentTo:  map[Role]*atomic.Uint64{RoleTrainer: {}, RoleRollout: {}, RoleRelay: {}},
		foreign: newRecall(maxRecalled),
		links:   make(map[peer.ID]*link),
		banned:  make(map[peer.ID]time.Time),
		fetches: make(map[cid.Cid]*fetch),
		lists:   make(map[cid.Cid][]cid.Cid),
		met:     make(chan struct{}),
	}
}

// Run meets every peer that the host is or gets connected to, until ctx ends and all its goroutines have.
func (x *Exchange) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	x.muster(ctx)
	notes := &network.NotifyBundle{
		ConnectedF:    func(_ network.Network, c network.Conn) { x.meet(c.RemotePeer()) },
		DisconnectedF: func(_ network.Network, c network.Conn) { x.lost(c.RemotePeer()) },
	}
	x.host.SetStreamHandler(controlProtocol, x.guard((*link).hear))
	x.host.SetStreamHandler(chunkProtocol, x.guard((*link).serve))
	x.host.Network().Notify(notes)
	for _, id := range x.host.Network().Peers() {
		x.meet(id)
	}
	<-ctx.Done()
	x.host.Network().StopNotify(notes)
	x.host.RemoveStreamHandler(controlProtocol)
	x.host.RemoveStreamHandler(chunkProtocol)
	x.dismiss()
	for _, l := range x.allLinks() {
		l.stop()
	}
	x.work.Wait()
	return nil
}

// meet starts the link to a peer that got connected, or shows a banned one the door.
func (x *Exchange) meet(id peer.ID) {
	if x.link(id) == nil {
		x.spawn(func() { x.host.Network().ClosePeer(id) })
	}
}

// guard makes a stream handler of f: it runs under the care of Run and for peers that are not banned.
func (x *Exchange) guard(f func(*link, network.Stream)) network.StreamHandler {
	return func(s network.Stream) {
		l := x.link(s.Conn().RemotePeer())
		if l == nil || !x.spawn(func() {
			defer s.Reset()
			defer context.AfterFunc(l.ctx, func() { s.Reset() })()
			f(l, s)
		}) {
			s.Reset()
		}
	}
}

// link returns what is shared with a connected peer and starts it when needed; nil when there is to be none.
func (x *Exchange) link(id peer.ID) *link {
	x.mu.Lock()
	defer x.mu.Unlock()
	if l := x.links[id]; l != nil {
		return l
	}
	if x.isBanned(id) {
		return nil
	}
	l := newLink(x, id)
	if !x.spawn(l.run) {
		return nil
	}
	x.links[id] = l
	return l
}

// lost ends the link to a peer whose last connection closed.
func (x *Exchange) lost(id peer.ID) {
	if x.connected(id) {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if l := x.links[id]; l != nil {
		l.stop()
	}
}

func (x *Exchange) connected(id peer.ID) bool {
	return x.host.Network().Connectedness(id) == network.Connected
}

// drop forgets a link that has ended and tells the downloads.
func (x *Exchange) drop(l *link) {
	l.stop()
	x.mu.Lock()
	if x.links[l.id] == l {
		delete(x.links, l.id)
	}
	x.mu.Unlock()
	l.went()
	x.tellFetches(peerLeft{l})
	if x.connected(l.id) { // again, since
		x.link(l.id)
	}
}

// follow adds a run to those that this node is in. It is called before Run.
func (x *Exchange) follow(run string) {
	x.self.Runs = append(x.self.Runs, run)
	slices.Sort(x.self.Runs)
}

// shares tells whether a peer that said h, nil for nothing, is in a run that this node is in, too.
func (x *Exchange) shares(h *Hello) bool {
	return h != nil && slices.ContainsFunc(h.Runs, func(run string) bool { return slices.Contains(x.self.Runs, run) })
}

// runsOf returns the runs that a peer is in, as far as it has said so.
func (x *Exchange) runsOf(id peer.ID) (runs []string, said bool) {
	x.mu.Lock()
	l := x.links[id]
	x.mu.Unlock()
	if l == nil {
		return nil, false
	}
	if h := l.heardHello(); h != nil {
		return h.Runs, true
	}
	return nil, false
}

// friends returns the links to peers that have said hello and share a run.
func (x *Exchange) friends() []*link {
	x.mu.Lock()
	defer x.mu.Unlock()
	var found []*link
	for _, l := range x.links {
		if h := l.heardHello(); x.shares(h) {
			found = append(found, l)
		}
	}
	return found
}

// Peers returns the connected peers that have said hello, of any run, in no order.
func (x *Exchange) Peers() []PeerInfo {
	x.mu.Lock()
	defer x.mu.Unlock()
	infos := make([]PeerInfo, 0, len(x.links))
	for _, l := range x.links {
		if h := l.heardHello(); h != nil {
			infos = append(infos, l.info(h))
		}
	}
	return infos
}

// PeerSent returns the bytes of blocks sent to peers of each role.
func (x *Exchange) PeerSent() map[Role]uint64 {
	sent := make(map[Role]uint64, len(x.sentTo))
	for role, n := range x.sentTo {
		sent[role] = n.Load()
	}
	return sent
}
