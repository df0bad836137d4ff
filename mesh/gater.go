package mesh

import (
	"github.com/libp2p/go-libp2p/core/connmgr"
	libp2pcontrol "github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

// gater lets only members connect. Inbound peers are known once the handshake has proved their key, so that is where
// they are refused, before a stream can be opened.
type gater struct {
	members *Members
	stats   *Stats
}

var _ connmgr.ConnectionGater = (*gater)(nil)

func (g *gater) InterceptPeerDial(p peer.ID) bool                    { return g.members.Allowed(p) }
func (g *gater) InterceptAddrDial(peer.ID, multiaddr.Multiaddr) bool { return true }
func (g *gater) InterceptAccept(network.ConnMultiaddrs) bool         { return true }
func (g *gater) InterceptUpgraded(network.Conn) (bool, libp2pcontrol.DisconnectReason) {
	return true, 0
}

func (g *gater) InterceptSecured(_ network.Direction, p peer.ID, c network.ConnMultiaddrs) bool {
	if g.members.Allowed(p) {
		return true
	}
	g.stats.PeersRefused.Add(1)
	g.members.turnAway(knock{p, c.RemoteMultiaddr().String()})
	return false
}
