package mesh

import (
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// came says that a peer is here, once it has said hello, and warns of one that is here in vain.
func (l *link) came(h Hello, first bool) {
	x := l.x
	if first {
		x.log.Info().Stringer("peer", l.id).Str("role", string(h.Role)).Str("cluster", h.Cluster).
			Str("addr", l.info(&h).Addr).Msg("peer connected")
	}
	if h.Run != x.self.Run && x.foreign.news(topic{peer: l.id}, fmt.Sprintf("run %q", h.Run), time.Now()) {
		x.log.Warn().Stringer("peer", l.id).Str("theirs", h.Run).Str("ours", x.self.Run).
			Msg("peer belongs to another run: nothing is exchanged with it; is one of the two names a slip?")
	}
}

// went says that a peer's last connection is gone. At the end of Run all of them go, which is no news.
func (l *link) went() {
	if h := l.heardHello(); h != nil && l.x.running() {
		l.x.log.Info().Stringer("peer", l.id).Str("role", string(h.Role)).Str("cluster", h.Cluster).Msg("peer lost")
	}
}

// strange tells whether nothing was heard of a peer that is not banned: if the connection ends, that is its doing.
func (x *Exchange) strange(id peer.ID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.links[id]
	return !x.isBanned(id) && (l == nil || l.heardHello() == nil)
}
