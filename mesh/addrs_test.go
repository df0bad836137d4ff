package mesh

import (
	"slices"
	"testing"

	"github.com/multiformats/go-multiaddr"
)

func addrs(text ...string) []multiaddr.Multiaddr {
	var out []multiaddr.Multiaddr
	for _, s := range text {
		out = append(out, multiaddr.StringCast(s))
	}
	return out
}

func TestAnnouncedAddresses(t *testing.T) {
	found := addrs("/ip4/127.0.0.1/tcp/1", "/ip6/::1/tcp/1", "/ip4/10.1.2.3/tcp/1", "/ip4/169.254.7.7/tcp/1", "/ip6/fe80::1/tcp/1")
	for _, c := range []struct {
		what             string
		listen, announce []multiaddr.Multiaddr
		found, want      []multiaddr.Multiaddr
	}{
		{"what others reach", addrs("/ip4/0.0.0.0/tcp/1"), nil, found, addrs("/ip4/10.1.2.3/tcp/1")},
		{"loopback when asked for", addrs("/ip4/127.0.0.1/tcp/1"), nil, found,
			addrs("/ip4/127.0.0.1/tcp/1", "/ip6/::1/tcp/1", "/ip4/10.1.2.3/tcp/1")},
		{"configured names", addrs("/ip4/0.0.0.0/tcp/1"), addrs("/dns4/trainer.example/tcp/9"), found, addrs("/dns4/trainer.example/tcp/9")},
		{"anything rather than nothing", addrs("/ip4/0.0.0.0/tcp/1"), nil, found[:1], found[:1]},
	} {
		got := announcer(c.listen, c.announce)(c.found)
		if !slices.EqualFunc(got, c.want, func(a, b multiaddr.Multiaddr) bool { return a.Equal(b) }) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
