package mesh

import (
	"context"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/rs/zerolog"
)

const (
	dialEvery   = 500 * time.Millisecond // between looks at who is missing
	dialTimeout = 10 * time.Second
	maxDials    = 8 // under way
)

// dialer keeps the node connected: to the bootstrap always, to members it has heard of up to a limit.
type dialer struct {
	host     host.Host
	members  *Members
	maxPeers int
	log      zerolog.Logger
	slots    chan struct{}
	wake     chan struct{} // holds a token when someone should be dialled at once
	work     sync.WaitGroup
	strange  func(peer.ID) bool // tells whether nothing was heard of a peer yet

	mu        sync.Mutex // guards what follows
	bootstrap []peer.AddrInfo
	backoff   *backoff
	outages   *outages
}

func newDialer(h host.Host, cfg *Config, log zerolog.Logger) *dialer {
	return &dialer{
		host: h, members: cfg.Members, maxPeers: cfg.MaxPeers, log: log,
		slots:     make(chan struct{}, maxDials),
		wake:      make(chan struct{}, 1),
		bootstrap: cfg.Bootstrap,
		backoff:   newBackoff(jitter),
		outages:   newOutages(),
	}
}

// run dials who is missing until ctx ends.
func (d *dialer) run(ctx context.Context) error {
	defer d.work.Wait()
	tick := time.NewTicker(dialEvery)
	defer tick.Stop()
	for {
		d.dialMissing(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-d.wake:
		}
	}
}

// setBootstrap replaces the bootstrap peers.
func (d *dialer) setBootstrap(infos []peer.AddrInfo) {
	d.mu.Lock()
	for _, i := range infos {
		d.backoff.fresh(i.ID)
	}
	d.bootstrap = infos
	d.mu.Unlock()
	d.rouse()
}

// fresh has p dialled at once, since it has a new address.
func (d *dialer) fresh(p peer.ID) {
	d.mu.Lock()
	d.backoff.fresh(p)
	d.mu.Unlock()
	d.rouse()
}

func (d *dialer) rouse() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *dialer) dialMissing(ctx context.Context) {
	for _, info := range d.missing(time.Now()) {
		select {
		case d.slots <- struct{}{}:
			d.work.Go(func() {
				defer func() { <-d.slots }()
				d.dial(ctx, info)
			})
		case <-ctx.Done():
			return
		}
	}
}

// missing returns the peers to dial now and marks them as being dialled.
func (d *dialer) missing(now time.Time) []peer.AddrInfo {
	d.mu.Lock()
	defer d.mu.Unlock()
	away := make(map[peer.ID]struct{})
	var due []peer.AddrInfo
	consider := func(info peer.AddrInfo) {
		_, seen := away[info.ID]
		if seen || info.ID == d.host.ID() || !d.members.Allowed(info.ID) || d.connected(info.ID) {
			return
		}
		away[info.ID] = struct{}{}
		if d.backoff.begin(info.ID, now) {
			due = append(due, info)
		}
	}
	for _, info := range d.bootstrap {
		consider(info)
	}
	room := d.maxPeers - len(d.host.Network().Peers())
	for _, p := range d.host.Peerstore().PeersWithAddrs() {
		if room <= len(due) {
			break
		}
		consider(peer.AddrInfo{ID: p})
	}
	d.backoff.prune(away, now)
	d.outages.prune(away, d.connected)
	return due
}

// seeking tells whether there is anybody to meet or met, and whether dials are under way.
func (d *dialer) seeking() (hoped, dialling bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, info := range d.bootstrap {
		hoped = hoped || info.ID != d.host.ID() && d.members.Allowed(info.ID)
	}
	return hoped || len(d.host.Network().Peers()) > 0, len(d.slots) > 0
}

func (d *dialer) connected(p peer.ID) bool {
	return d.host.Network().Connectedness(p) == network.Connected
}

func (d *dialer) dial(ctx context.Context, info peer.AddrInfo) {
	limited, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	d.host.Peerstore().AddAddrs(info.ID, info.Addrs, peerstore.TempAddrTTL)
	clearBackoff(d.host, info.ID)
	err := d.host.Connect(limited, peer.AddrInfo{ID: info.ID})
	d.mu.Lock()
	d.backoff.ended(info.ID, time.Now())
	d.mu.Unlock()
	switch {
	case ctx.Err() != nil || d.connected(info.ID):
	case err == nil:
		d.cutOff(info.ID)
	default:
		d.log.Debug().Err(err).Stringer("peer", info.ID).Msg("not reached")
		d.failed(info.ID, diagnose(err, len(info.Addrs) > 0))
	}
}

// clearBackoff makes libp2p forget earlier failures to reach p: this package has its own patience.
func clearBackoff(h host.Host, p peer.ID) {
	if s, ok := h.Network().(interface{ Backoff() *swarm.DialBackoff }); ok {
		s.Backoff().Clear(p)
	}
}
