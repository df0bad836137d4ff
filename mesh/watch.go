package mesh

import (
	"context"
	"fmt"
	"slices"
	"time"

	libp2pevent "github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/rs/zerolog"
)

const (
	// simultaneous is the time within which two nodes may have dialled each other without either having failed.
	simultaneous = 2 * time.Second
	// muteAfter is how long a follower of the run may be missing from the topic's subscribers.
	muteAfter = 5 * time.Second
	muteEvery = time.Second
	connTag   = "sparsecast"
)

// watcher looks after connections: who is admitted, which of several is alive, and whether gossip still knows the peer.
type watcher struct {
	host    host.Host
	members *Members
	heads   *headSync
	records *records
	dialer  *dialer
	log     zerolog.Logger
}

// superseded returns those of others that c replaces. A peer dials again only if it holds the connection before for
// dead, and it may be right: a host that vanished without a word leaves a connection that looks alive for up to 40 s,
// and gossipsub goes on writing to it. Two that were opened together are both kept, or each side could close another.
func superseded(c network.Conn, others []network.Conn) []network.Conn {
	var old []network.Conn
	for _, o := range others {
		if o.ID() != c.ID() && c.Stat().Opened.Sub(o.Stat().Opened) > simultaneous {
			old = append(old, o)
		}
	}
	return old
}

// watchPeers greets peers as they come and clears up after them, until ctx ends.
func (w *watcher) watchPeers(ctx context.Context) error {
	sub, err := w.host.EventBus().Subscribe([]any{
		new(libp2pevent.EvtPeerIdentificationCompleted), new(libp2pevent.EvtPeerProtocolsUpdated), new(libp2pevent.EvtPeerConnectednessChanged),
	}, eventbus.BufSize(256))
	if err != nil {
		return fmt.Errorf("mesh: watch peers: %w", err)
	}
	defer sub.Close()
	for _, p := range w.host.Network().Peers() {
		w.greet(p)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-sub.Out():
			w.handle(e)
		}
	}
}

func (w *watcher) handle(e any) {
	switch e := e.(type) {
	case libp2pevent.EvtPeerIdentificationCompleted:
		for _, o := range superseded(e.Conn, w.host.Network().ConnsToPeer(e.Peer)) {
			w.log.Debug().Stringer("peer", e.Peer).Stringer("addr", o.RemoteMultiaddr()).Msg("older connection closed")
			o.Close()
		}
		w.records.met(e.SignedPeerRecord)
		w.dialer.reached(e.Peer)
		w.greet(e.Peer)
	case libp2pevent.EvtPeerProtocolsUpdated:
		if slices.Contains(e.Added, headProtocol) {
			w.heads.request(e.Peer) // it has just joined a run
		}
	case libp2pevent.EvtPeerConnectednessChanged:
		if e.Connectedness != network.Connected {
			w.heads.lost(e.Peer)
			w.dialer.rouse()
		}
	}
}

func (w *watcher) greet(p peer.ID) {
	w.host.ConnManager().Protect(p, connTag)
	w.heads.request(p)
}

// watchMembers disconnects whoever is dropped from the list, until ctx ends.
func (w *watcher) watchMembers(ctx context.Context) error {
	for {
		changed := w.members.Changed() // before looking, so that no change falls between
		for _, p := range w.host.Network().Peers() {
			if !w.members.Allowed(p) {
				w.log.Info().Stringer("peer", p).Msg("disconnected: no longer a member")
				w.host.Network().ClosePeer(p)
			}
		}
		w.dialer.rouse()
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// watchGossip makes followers of a run that its gossip has lost say hello again, by closing their connection, until
// ctx ends.
func (w *watcher) watchGossip(ctx context.Context, followers, subscribers func() []peer.ID) error {
	missing := make(absences)
	tick := time.NewTicker(muteEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			for _, p := range missing.overdue(now, followers(), subscribers()) {
				w.log.Debug().Stringer("peer", p).Msg("connection renewed: gossip has lost the peer")
				w.host.Network().ClosePeer(p)
			}
		}
	}
}

// absences remembers since when peers are missing.
type absences map[peer.ID]time.Time

// overdue returns the expected peers that have been missing from present for longer than muteAfter, once each.
func (a absences) overdue(now time.Time, expected, present []peer.ID) []peer.ID {
	here, waited := setOf(present), setOf(expected)
	for p := range a {
		if _, ok := waited[p]; !ok {
			delete(a, p)
		}
	}
	var late []peer.ID
	for _, p := range expected {
		since, known := a[p]
		_, ok := here[p]
		switch {
		case ok:
			delete(a, p)
		case !known:
			a[p] = now
		case now.Sub(since) > muteAfter:
			delete(a, p)
			late = append(late, p)
		}
	}
	return late
}
