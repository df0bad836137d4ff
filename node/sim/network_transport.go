package sim

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// connectTimeout is that of libp2p's TCP transport.
const connectTimeout = 5 * time.Second

// Transport has a libp2p host reach the network through the process, at addresses such as /ip4/10.0.0.1/tcp/4001. It
// does what libp2p's TCP transport does, and stands in its place.
func (p *Process) Transport() libp2p.Option {
	return libp2p.Transport(func(u transport.Upgrader, limits network.ResourceManager) (*streams, error) {
		return &streams{p, u, limits}, nil
	})
}

// streams is a libp2p transport over the network.
type streams struct {
	process *Process
	upgrade transport.Upgrader
	limits  network.ResourceManager
}

var _ transport.Transport = (*streams)(nil)

// CanDial is that of transport.Transport.
func (t *streams) CanDial(addr multiaddr.Multiaddr) bool {
	_, err := tcpAddr(addr)
	return err == nil
}

// Dial is that of transport.Transport.
func (t *streams) Dial(ctx context.Context, addr multiaddr.Multiaddr, id peer.ID) (transport.CapableConn, error) {
	scope, err := t.limits.OpenConnection(network.DirOutbound, true, addr)
	if err != nil {
		return nil, err
	}
	c, err := t.dial(ctx, addr, id, scope)
	if err != nil {
		scope.Done()
		return nil, err
	}
	return c, nil
}

func (t *streams) dial(ctx context.Context, addr multiaddr.Multiaddr, id peer.ID, scope network.ConnManagementScope) (
	transport.CapableConn, error) {
	if err := scope.SetPeer(id); err != nil {
		return nil, err
	}
	to, err := tcpAddr(addr)
	if err != nil {
		return nil, err
	}
	soon, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	raw, err := t.process.Dial(soon, to)
	if err != nil {
		return nil, err
	}
	c, err := manet.WrapNetConn(raw)
	if err != nil {
		return nil, err
	}
	direction := network.DirOutbound
	if both, client, _ := network.GetSimultaneousConnect(ctx); both && !client {
		direction = network.DirInbound
	}
	return t.upgrade.Upgrade(ctx, t, c, direction, id, scope)
}

// Listen is that of transport.Transport.
func (t *streams) Listen(addr multiaddr.Multiaddr) (transport.Listener, error) {
	at, err := tcpAddr(addr)
	if err != nil {
		return nil, err
	}
	l, err := t.process.Listen(at)
	if err != nil {
		return nil, err
	}
	wrapped, err := manet.WrapNetListener(l)
	if err != nil {
		return nil, err
	}
	return t.upgrade.UpgradeGatedMaListener(t, t.upgrade.GateMaListener(wrapped)), nil
}

// Protocols is that of transport.Transport.
func (t *streams) Protocols() []int { return []int{multiaddr.P_TCP} }

// Proxy is that of transport.Transport.
func (t *streams) Proxy() bool { return false }

func tcpAddr(addr multiaddr.Multiaddr) (*net.TCPAddr, error) {
	a, err := manet.ToNetAddr(addr)
	if err != nil {
		return nil, err
	}
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return nil, fmt.Errorf("%s is no TCP address", addr)
	}
	return tcp, nil
}
