package mesh

import (
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// outages remembers who is out of reach and why. It is plain state: the caller brings the time.
type outages struct {
	peers map[peer.ID]outage
	told  *recall // keeps a peer that comes and goes from filling the log
}

type outage struct {
	reason string // the latest
	said   bool   // so that its end is worth a line, too
}

func newOutages() *outages {
	return &outages{peers: make(map[peer.ID]outage), told: newRecall(maxConns)}
}

// failed tells whether to say that p is out of reach: at first, and when the reason changes to one not said lately.
func (o *outages) failed(p peer.ID, reason string, now time.Time) bool {
	was, out := o.peers[p]
	if out && was.reason == reason {
		return false
	}
	say := o.told.news(topic{p, reason}, reason, now)
	o.peers[p] = outage{reason, was.said || say}
	return say
}

// over tells whether to say that p is within reach again.
func (o *outages) over(p peer.ID) bool {
	said := o.peers[p].said
	delete(o.peers, p)
	return said
}

// prune forgets whom nobody looks for any more.
func (o *outages) prune(missing map[peer.ID]struct{}, connected func(peer.ID) bool) {
	for p := range o.peers {
		if _, ok := missing[p]; !ok && !connected(p) {
			delete(o.peers, p)
		}
	}
}

// failed notes why p was not reached.
func (d *dialer) failed(p peer.ID, reason string) {
	d.mu.Lock()
	say := d.outages.failed(p, reason, time.Now())
	d.mu.Unlock()
	if say {
		d.log.Warn().Stringer("peer", p).Str("reason", reason).Msg("peer not reached")
	}
}

// cutOff notes that p took the call and hung up before a word was said, as a node does on one that is no member.
func (d *dialer) cutOff(p peer.ID) {
	if d.members.Allowed(p) && d.strange(p) {
		d.failed(p, "the peer closed the connection: does its peers file list "+d.host.ID().String()+"?")
	}
}

// reached notes that p has said who it is.
func (d *dialer) reached(p peer.ID) {
	d.mu.Lock()
	say := d.outages.over(p)
	d.mu.Unlock()
	if say {
		d.log.Info().Stringer("peer", p).Msg("peer reached")
	}
}
