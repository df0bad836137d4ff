package mesh

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Problem is something that may keep a node from following its runs, in words for whoever runs it.
type Problem struct {
	Peer peer.ID `json:"peer,omitempty"` // whom it is about, a node or a signer; empty when nobody in particular
	Text string  `json:"text"`
	Run  string  `json:"run,omitempty"` // which run it keeps from being followed; empty when it is all of them
}

// maxProblems bounds what one look returns.
const maxProblems = 256

// Problems tells what stands in the way now: a missing bootstrap, peers of another run, a wrong clock, a disk that takes no newer
// version, a frozen epoch, and, of the last ten minutes, records that were refused and peers that were turned away. It
// is cheap, bounded, and sorted by peer.
func (m *Mesh) Problems() []Problem {
	now := time.Now()
	all := slices.Concat(m.exchange.problems(), m.dialer.problems(), m.heads.clocks.problems())
	for _, r := range m.joined() {
		all = append(all, r.problems(now)...)
	}
	return ordered(slices.Concat(all, m.heads.junk.recent(now), m.cfg.Members.strangers(now)))
}

// ordered bounds and sorts what several sources told, each bounded itself, the weightiest first.
func ordered(all []Problem) []Problem {
	all = all[:min(len(all), maxProblems)]
	slices.SortFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Text, b.Text), cmp.Compare(a.Run, b.Run))
	})
	return slices.Compact(all)
}

// problems tells who is connected in vain.
func (x *Exchange) problems() []Problem {
	x.mu.Lock()
	defer x.mu.Unlock()
	var found []Problem
	met := false
	for id, l := range x.links {
		h := l.heardHello()
		met = met || h != nil
		if h != nil && !x.shares(h) {
			found = append(found, Problem{Peer: id, Text: fmt.Sprintf("belongs to %s, this node to %s", named(h.Runs), named(x.self.Runs))})
		}
	}
	if !met {
		found = append(found, Problem{Text: "no peer is connected"})
	}
	return found
}

// problems tells which bootstrap peers are not reached, and why.
func (d *dialer) problems() []Problem {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []Problem
	for _, info := range d.bootstrap {
		o, out := d.outages.peers[info.ID]
		switch {
		case info.ID == d.host.ID():
		case !d.members.Allowed(info.ID):
			found = append(found, Problem{Peer: info.ID, Text: "bootstrap peer is not dialled: it is not a member; add its ID to the peers file"})
		case out:
			found = append(found, Problem{Peer: info.ID, Text: "bootstrap peer is not reached: " + o.reason})
		case !d.connected(info.ID):
			found = append(found, Problem{Peer: info.ID, Text: "bootstrap peer is not reached yet"})
		}
	}
	return found
}

// strangers tells who was turned away lately and is still no member.
func (m *Members) strangers(now time.Time) []Problem {
	return slices.DeleteFunc(m.turned.recent(now), func(p Problem) bool { return m.Allowed(p.Peer) })
}
