package mesh

import (
	"strings"
	"testing"

	"github.com/multiformats/go-multiaddr"
)

func TestAddressInUseIsAnErrorThatNamesIt(t *testing.T) {
	for _, listen := range []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"} {
		first := loopbackHost(t, 1, NewMembers(), new(Stats), listen)
		taken := first.Network().ListenAddresses()[0]
		_, err := NewHost(HostConfig{Key: testKey(2), Members: NewMembers(), Listen: []multiaddr.Multiaddr{taken}}, new(Stats))
		if err == nil || !strings.Contains(err.Error(), taken.String()) || !strings.Contains(err.Error(), "another node") {
			t.Errorf("%s twice: %v", taken, err)
		}
	}
}

func TestHostNeedsWhatItCannotDefault(t *testing.T) {
	if _, err := NewHost(HostConfig{Members: NewMembers()}, new(Stats)); err == nil {
		t.Error("a host without a key")
	}
	if _, err := NewHost(HostConfig{Key: testKey(1)}, new(Stats)); err == nil {
		t.Error("a host without members")
	}
	if _, err := NewHost(HostConfig{Key: testKey(1), Members: NewMembers(), Prefer: "pigeon"}, new(Stats)); err == nil {
		t.Error("a host on pigeons")
	}
}

func TestTCPIsDialledFirst(t *testing.T) {
	quic := multiaddr.StringCast("/ip4/10.0.0.1/udp/1/quic-v1")
	tcp := multiaddr.StringCast("/ip4/10.0.0.1/tcp/1")
	ranked := rankTCPFirst([]multiaddr.Multiaddr{quic, tcp})
	if len(ranked) != 2 || !ranked[0].Addr.Equal(tcp) || ranked[0].Delay != 0 || ranked[1].Delay < quicDelay {
		t.Errorf("both: %v", ranked)
	}
	if ranked := rankTCPFirst([]multiaddr.Multiaddr{quic}); len(ranked) != 1 || ranked[0].Delay != 0 {
		t.Errorf("QUIC alone: %v", ranked)
	}
}
