package mesh

import (
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/x/rate"
)

// Limits on connections. libp2p's own are made for strangers: eight connections and one new one every five seconds
// from an address, which a rack behind one NAT exceeds on start.
const (
	connsPerHost    = 16 // from one address outside the trusted networks: a few nodes on a host, and their restarts
	connsPerSubnet6 = 64 // from one IPv6 /56, which is one site
	newConnRate     = 2  // a second and host
	newConnBurst    = 32
	maxConns        = 1024 // in all, about 0.3 MiB each
)

// newLimits returns a resource manager for members: the trusted networks and loopback may hold any number of
// connections within the total.
func newLimits(trusted []netip.Prefix, registered bool) (network.ResourceManager, error) {
	defaults := rcmgr.DefaultLimits
	libp2p.SetDefaultServiceLimits(&defaults)
	limits := rcmgr.PartialLimitConfig{
		System:    rcmgr.ResourceLimits{Conns: maxConns, ConnsInbound: maxConns, ConnsOutbound: maxConns, FD: maxConns},
		Transient: rcmgr.ResourceLimits{Conns: maxConns / 4, ConnsInbound: maxConns / 4, ConnsOutbound: maxConns / 4, FD: maxConns / 4},
	}.Build(defaults.AutoScale())
	v4, v6, rates := trustedLimits(trusted)
	opts := []rcmgr.Option{
		rcmgr.WithNetworkPrefixLimit(v4, v6),
		rcmgr.WithLimitPerSubnet(
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: connsPerHost}},
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 56, ConnCount: connsPerSubnet6}}),
		rcmgr.WithConnRateLimiters(&rate.Limiter{
			NetworkPrefixLimits: rates,
			SubnetRateLimiter: rate.SubnetLimiter{
				IPv4SubnetLimits: []rate.SubnetLimit{{PrefixLength: 32, Limit: rate.Limit{RPS: newConnRate, Burst: newConnBurst}}},
				IPv6SubnetLimits: []rate.SubnetLimit{{PrefixLength: 56, Limit: rate.Limit{RPS: newConnRate, Burst: newConnBurst}}},
				GracePeriod:      time.Minute,
			},
		}),
	}
	if !registered {
		opts = append(opts, rcmgr.WithMetricsDisabled())
	}
	m, err := rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(limits), opts...)
	if err != nil {
		return nil, fmt.Errorf("resource limits: %w", err)
	}
	return m, nil
}

func trustedLimits(trusted []netip.Prefix) (v4, v6 []rcmgr.NetworkPrefixLimit, rates []rate.PrefixLimit) {
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for _, p := range append(loopback, trusted...) {
		limit := rcmgr.NetworkPrefixLimit{Network: p, ConnCount: math.MaxInt}
		if p.Addr().Is4() {
			v4 = append(v4, limit)
		} else {
			v6 = append(v6, limit)
		}
		rates = append(rates, rate.PrefixLimit{Prefix: p}) // the zero limit is none
	}
	return v4, v6, rates
}
