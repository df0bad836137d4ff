package mesh

import (
	"errors"
	"fmt"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/sparsecast/sparsecast/delta"
)

// maxBanned bounds the peers that are remembered as banned.
const maxBanned = 1024

// keep checks and stores a block that a peer sent.
func (x *Exchange) keep(l *link, id cid.Cid, data []byte) error {
	if x.store.Has(id) {
		x.stats.ChunksDuplicate.Add(1)
		return nil
	}
	err := x.store.Put(id, data) // which refuses data that id does not name: one hash is enough
	switch {
	case errors.Is(err, delta.ErrMismatch):
		x.stats.ChunksTampered.Add(1)
		x.offend(l, err)
		return err
	case err != nil:
		return fmt.Errorf("%w: %w; free space in the store", errStore, err)
	}
	l.received.Add(uint64(len(data)))
	x.stats.ChunksReceived.Add(1)
	x.stats.ChunkBytesReceived.Add(uint64(len(data)))
	return nil
}

// offend cuts off a peer that sent what no honest one sends.
func (x *Exchange) offend(l *link, why error) {
	x.mu.Lock()
	for id, until := range x.banned {
		if len(x.banned) >= maxBanned || time.Now().After(until) {
			delete(x.banned, id)
		}
	}
	again := x.isBanned(l.id)
	x.banned[l.id] = time.Now().Add(x.cfg.BanFor)
	x.mu.Unlock()
	if !again {
		x.stats.PeersBanned.Add(1)
		x.log.Warn().Stringer("peer", l.id).Dur("for", x.cfg.BanFor).Err(why).Msg("peer cut off")
	}
	l.stop()
	x.spawn(func() { x.host.Network().ClosePeer(l.id) })
}

// expel cuts off a peer for what it did elsewhere than here.
func (x *Exchange) expel(id peer.ID, why error) {
	if l := x.link(id); l != nil {
		x.offend(l, why)
	}
}

// isBanned needs the lock.
func (x *Exchange) isBanned(id peer.ID) bool { return time.Now().Before(x.banned[id]) }
