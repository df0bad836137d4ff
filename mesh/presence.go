package mesh

import (
	"strconv"
	"strings"
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
	if !x.shares(&h) && x.foreign.news(topic{peer: l.id}, named(h.Runs), time.Now()) {
		x.log.Warn().Stringer("peer", l.id).Strs("theirs", h.Runs).Strs("ours", x.self.Runs).
			Msg("peer belongs to another run: nothing is exchanged with it; is one of the two names a slip?")
	}
}

// named returns the names of runs for a sentence. Peers choose theirs.
func named(runs []string) string {
	quoted := make([]string, len(runs))
	for i, run := range runs {
		quoted[i] = strconv.Quote(run)
	}
	switch len(runs) {
	case 0:
		return "no run"
	case 1:
		return "run " + clip(quoted[0])
	}
	return "the runs " + clip(strings.Join(quoted, ", "))
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
