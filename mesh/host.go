package mesh

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	libp2pquic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/multiformats/go-multiaddr"
	"github.com/prometheus/client_golang/prometheus"
)

// HostConfig says who a node is and where it is reached. Key and Members must be set.
type HostConfig struct {
	// Key is the node's identity. Its ID is what others list as a member.
	Key crypto.PrivKey
	// Listen are the addresses to accept connections on, such as /ip4/0.0.0.0/tcp/4001. None: dial only.
	Listen []multiaddr.Multiaddr
	// Announce are the addresses told to others instead of those found on the interfaces: behind NAT, in a container
	// with a published port, or by name (/dns4/...), which survives a change of address.
	Announce []multiaddr.Multiaddr
	// Members may connect.
	Members *Members
	// Prefer is the transport that is dialled first: "tcp" (the default) moves bulk at a third of QUIC's CPU cost and
	// can use the kernel's BBR; "quic" gets through where only UDP is let out.
	Prefer string
	// TrustedNets are networks from which any number of connections may come: many nodes behind one address. Others
	// are held to a few from each address.
	TrustedNets []netip.Prefix
	// Transport is used instead of TCP and QUIC: a simulated network's. Nil means those two.
	Transport libp2p.Option
	// Registerer receives libp2p's own metrics. Nil turns them off.
	Registerer prometheus.Registerer
	// Options come last and win. Tests place hosts on a simulated network with them.
	Options []libp2p.Option
}

// UserAgent is how nodes of this build name themselves to peers.
const UserAgent = "sparsecast/1"

// NewHost builds a libp2p host and listens. The caller closes it.
func NewHost(cfg HostConfig, stats *Stats) (host.Host, error) {
	if cfg.Key == nil || cfg.Members == nil {
		return nil, errors.New("host: the identity key and the members must be set")
	}
	ranker, err := rankerFor(cfg.Prefer)
	if err != nil {
		return nil, err
	}
	opts, err := hostOptions(&cfg, ranker, stats)
	if err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	h, err := libp2p.New(opts...)
	if err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	// One at a time: libp2p is content when any address works, but a node that is half reachable is a riddle.
	for _, a := range cfg.Listen {
		if err := h.Network().Listen(a); err != nil {
			return nil, errors.Join(fmt.Errorf("host: listen on %s: %w; is another node using this address? "+
				"stop it, or set another listen address", a, err), h.Close())
		}
	}
	return h, nil
}

func hostOptions(cfg *HostConfig, ranker network.DialRanker, stats *Stats) ([]libp2p.Option, error) {
	limits, err := newLimits(cfg.TrustedNets, cfg.Registerer != nil)
	if err != nil {
		return nil, err
	}
	// Above what the limits admit: every connected peer is a member, and none is ever trimmed.
	conns, err := connmgr.NewConnManager(maxConns-1, maxConns, connmgr.WithGracePeriod(time.Minute))
	if err != nil {
		return nil, fmt.Errorf("connection manager: %w", err)
	}
	metrics := libp2p.DisableMetrics()
	if cfg.Registerer != nil {
		metrics = libp2p.PrometheusRegisterer(cfg.Registerer)
	}
	return append([]libp2p.Option{
		libp2p.Identity(cfg.Key),
		libp2p.UserAgent(UserAgent),
		libp2p.NoListenAddrs,
		transports(cfg),
		libp2p.Security(libp2ptls.ID, libp2ptls.New),
		libp2p.Security(noise.ID, noise.New),
		libp2p.Muxer(yamux.ID, bulkMuxer()),
		libp2p.SwarmOpts(swarm.WithDialRanker(ranker)),
		libp2p.ResourceManager(limits),
		libp2p.ConnectionManager(conns),
		libp2p.ConnectionGater(&gater{cfg.Members, stats}),
		libp2p.AddrsFactory(announcer(cfg.Listen, cfg.Announce)),
		// Observed addresses are the NAT's ports of outbound connections, where nobody listens.
		libp2p.DisableIdentifyAddressDiscovery(),
		libp2p.DisableRelay(),
		metrics,
	}, cfg.Options...), nil
}

func transports(cfg *HostConfig) libp2p.Option {
	if cfg.Transport != nil {
		return cfg.Transport
	}
	return libp2p.ChainOptions(
		// With port reuse two nodes of one user could silently share a port.
		libp2p.Transport(tcp.NewTCPTransport, tcp.DisableReuseport()),
		libp2p.Transport(libp2pquic.NewTransport),
	)
}

// bulkMuxer is yamux tuned for blocks up to 1 MiB: a tenth less CPU than its defaults, and windows for 16 MiB in flight.
func bulkMuxer() *yamux.Transport {
	t := *yamux.DefaultTransport
	t.MaxMessageSize = 256 << 10
	t.WriteCoalesceDelay = 0
	t.MaxStreamWindowSize = 16 << 20
	return &t
}

// quicDelay gives TCP this lead over QUIC. A handshake over TCP takes three round trips to QUIC's one.
const quicDelay = time.Second

func rankerFor(prefer string) (network.DialRanker, error) {
	switch prefer {
	case "", "tcp":
		return rankTCPFirst, nil
	case "quic":
		return swarm.DefaultDialRanker, nil
	}
	return nil, fmt.Errorf("host: preferred transport %q: want tcp or quic", prefer)
}

// rankTCPFirst dials QUIC only where TCP does not answer, so that bulk runs over TCP.
func rankTCPFirst(addrs []multiaddr.Multiaddr) []network.AddrDelay {
	var tcps, rest []multiaddr.Multiaddr
	for _, a := range addrs {
		if _, err := a.ValueForProtocol(multiaddr.P_TCP); err == nil {
			tcps = append(tcps, a)
		} else {
			rest = append(rest, a)
		}
	}
	ranked := swarm.DefaultDialRanker(tcps)
	for _, d := range swarm.DefaultDialRanker(rest) {
		if len(tcps) > 0 {
			d.Delay += quicDelay
		}
		ranked = append(ranked, d)
	}
	return ranked
}
