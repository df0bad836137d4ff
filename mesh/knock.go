package mesh

import (
	"context"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// knock is a try to connect by someone who is no member.
type knock struct {
	peer peer.ID
	addr string
}

// turnAway notes that p was refused at the door. It never blocks: knocks hold as many as are remembered.
func (m *Members) turnAway(k knock) {
	text := "refused: it is not a member; add its ID to the peers file to admit it (it came from " + k.addr + ")"
	if !m.turned.news(topic{peer: k.peer}, text, time.Now()) {
		return
	}
	select {
	case m.knocks <- k:
	default:
	}
}

// watchDoor says who was turned away, also before the mesh ran, until ctx ends.
func (w *watcher) watchDoor(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case k := <-w.members.knocks:
			w.log.Warn().Stringer("peer", k.peer).Str("addr", k.addr).
				Msg("refused a peer that is not a member: add its ID to the peers file to admit it")
		}
	}
}
