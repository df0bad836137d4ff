package mesh

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// announcer returns the addresses that a host tells others. Configured ones win. Otherwise those it listens on, less
// what no other host can reach: loopback (unless asked to listen there), link-local, and the host's side of container
// bridges. Inside a container the bridge network is an ordinary interface and stays.
func announcer(listen, announce []multiaddr.Multiaddr) func([]multiaddr.Multiaddr) []multiaddr.Multiaddr {
	if len(announce) > 0 {
		return func([]multiaddr.Multiaddr) []multiaddr.Multiaddr { return slices.Clone(announce) }
	}
	loopback := slices.ContainsFunc(listen, manet.IsIPLoopback)
	bridges := bridgeAddrs()
	return func(all []multiaddr.Multiaddr) []multiaddr.Multiaddr {
		reachable := slices.DeleteFunc(slices.Clone(all), func(a multiaddr.Multiaddr) bool {
			ip, ok := addrIP(a)
			return ok && (ip.IsLoopback() && !loopback || ip.IsLinkLocalUnicast() || bridges[ip])
		})
		if len(reachable) == 0 {
			return all // a host without a network: its own addresses are better than silence
		}
		return reachable
	}
}

// addrIP returns the IP address at the head of a; false for names and anything else.
func addrIP(a multiaddr.Multiaddr) (netip.Addr, bool) {
	ip, err := manet.ToIP(a)
	if err != nil {
		return netip.Addr{}, false
	}
	addr, ok := netip.AddrFromSlice(ip)
	return addr.Unmap(), ok
}

// bridgePrefixes begin the names of interfaces that lead to containers and virtual machines on this host.
var bridgePrefixes = []string{"docker", "br-", "virbr", "cni", "podman", "lxcbr", "veth"}

func bridgeAddrs() map[netip.Addr]bool {
	found := make(map[netip.Addr]bool)
	interfaces, err := net.Interfaces()
	if err != nil {
		return found // then nothing is filtered, which costs dialling time only
	}
	for _, i := range interfaces {
		if !slices.ContainsFunc(bridgePrefixes, func(p string) bool { return strings.HasPrefix(i.Name, p) }) {
			continue
		}
		addrs, _ := i.Addrs() // an interface that just vanished has none
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				found[p.Addr().Unmap()] = true
			}
		}
	}
	return found
}
