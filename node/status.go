package node

import (
	"context"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// Status is part of api.Backend.
func (n *Node) Status(context.Context) api.Status {
	s := api.Status{
		ID: n.host.ID().String(), Role: string(n.cfg.Role), Run: n.cfg.Run, Cluster: n.cfg.Cluster, Addrs: n.addrs(),
		Problems: []string{}, Peers: []api.PeerInfo{}, Counters: n.stats.Snapshot(), SentBytes: map[string]uint64{},
		StartedAt: n.started.UnixMilli(),
	}
	n.board.fill(&s)
	for _, p := range n.mesh.Peers() {
		s.Peers = append(s.Peers, api.PeerInfo{
			ID: p.ID.String(), Role: string(p.Role), Cluster: p.Cluster, Addr: p.Addr,
			RTT: float64(p.RTT.Microseconds()) / 1000, Sent: p.SentBytes, Received: p.ReceivedBytes,
		})
	}
	for _, p := range n.mesh.Problems() {
		s.Problems = append(s.Problems, problemText(p))
	}
	for role, n := range n.mesh.PeerSent() {
		s.SentBytes[string(role)] = n
	}
	return s
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

func problemText(p mesh.Problem) string {
	if p.Peer == "" {
		return p.Text
	}
	return p.Peer.String() + ": " + p.Text
}
