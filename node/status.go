package node

import (
	"context"
	"slices"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// Status is part of api.Run.
func (p *part) Status(context.Context) api.Status {
	n := p.node
	s := api.Status{
		ID: n.host.ID().String(), Role: string(n.cfg.Role), Run: p.settings.Name, Cluster: n.cfg.Cluster, Addrs: n.addrs(),
		Problems: []string{}, Peers: []api.PeerInfo{}, Counters: n.stats.Snapshot(), SentBytes: map[string]uint64{},
		StartedAt: n.started.UnixMilli(),
	}
	p.board.fill(&s)
	s.Store.Blocks, s.Store.Bytes = n.store.Size()
	for _, p := range n.mesh.Peers() {
		s.Peers = append(s.Peers, api.PeerInfo{
			ID: p.ID.String(), Role: string(p.Role), Cluster: p.Cluster, Addr: p.Addr,
			RTT: float64(p.RTT.Microseconds()) / 1000, Sent: p.SentBytes, Received: p.ReceivedBytes,
		})
	}
	problems := n.mesh.Problems()
	s.Problems = slices.Concat(s.Problems, problemsOf("", problems), problemsOf(p.settings.Name, problems))
	for role, n := range n.mesh.PeerSent() {
		s.SentBytes[string(role)] = n
	}
	return s
}

// info is the short of Status, without what stands in the way of all runs.
func (p *part) info(problems []mesh.Problem) api.RunInfo {
	s := api.Status{Problems: []string{}}
	p.board.fill(&s)
	return api.RunInfo{
		Run: p.settings.Name, State: s.State, Error: s.Error, Waiting: s.Waiting, Latest: s.Latest, Served: s.Served, Path: s.Path,
		Problems: append(s.Problems, problemsOf(p.settings.Name, problems)...), Behind: s.Behind, BehindSeconds: s.BehindSeconds,
	}
}

// addrs returns the addresses at which others can dial this node.
func (n *Node) addrs() []string {
	full, err := peer.AddrInfoToP2pAddrs(&peer.AddrInfo{ID: n.host.ID(), Addrs: n.host.Addrs()})
	if err != nil {
		return nil
	}
	list := make([]string, len(full))
	for i, a := range full {
		list[i] = a.String()
	}
	return list
}

// problemsOf returns the text of those problems that are about a run or, without a name, about all of them.
func problemsOf(run string, all []mesh.Problem) []string {
	list := []string{}
	for _, p := range all {
		if p.Run == run {
			list = append(list, problemText(p))
		}
	}
	return list
}

func problemText(p mesh.Problem) string {
	if p.Peer == "" {
		return p.Text
	}
	return p.Peer.String() + ": " + p.Text
}
