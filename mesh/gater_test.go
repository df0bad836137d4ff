package mesh

import (
	"context"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

// loopbackHost is a real host on a free port of this machine.
func loopbackHost(t *testing.T, key int, members *Members, stats *Stats, listen string) host.Host {
	t.Helper()
	h, err := NewHost(HostConfig{
		Key: testKey(key), Members: members, Listen: []multiaddr.Multiaddr{multiaddr.StringCast(listen)},
	}, stats)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func TestOnlyMembersConnect(t *testing.T) {
	for _, listen := range []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"} {
		stats := new(Stats)
		guarded := loopbackHost(t, 1, NewMembers(idOf(testKey(2))), stats, listen)
		member := loopbackHost(t, 2, NewMembers(guarded.ID()), new(Stats), listen)
		stranger := loopbackHost(t, 3, NewMembers(guarded.ID()), new(Stats), listen)
		to := peer.AddrInfo{ID: guarded.ID(), Addrs: guarded.Addrs()}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()

		if err := member.Connect(ctx, to); err != nil {
			t.Errorf("%s: a member is refused: %v", listen, err)
		}
		// The dialler learns of the refusal at the latest when it wants a stream.
		if err := stranger.Connect(ctx, to); err == nil {
			if _, err := stranger.NewStream(ctx, guarded.ID(), headProtocol); err == nil {
				t.Errorf("%s: a stranger has a stream", listen)
			}
		}
		if guarded.Network().Connectedness(stranger.ID()) == network.Connected {
			t.Errorf("%s: a stranger is connected", listen)
		}
		if stats.PeersRefused.Load() == 0 {
			t.Errorf("%s: the refusal is not counted", listen)
		}
		if err := guarded.Connect(ctx, peer.AddrInfo{ID: stranger.ID(), Addrs: stranger.Addrs()}); err == nil {
			t.Errorf("%s: a stranger was dialled", listen)
		}
	}
}

func TestBulkRunsOverTCP(t *testing.T) {
	open := NewMembers()
	open.Open = true
	server, err := NewHost(HostConfig{Key: testKey(1), Members: open, Listen: []multiaddr.Multiaddr{
		multiaddr.StringCast("/ip4/127.0.0.1/udp/0/quic-v1"), multiaddr.StringCast("/ip4/127.0.0.1/tcp/0"),
	}}, new(Stats))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	for prefer, transport := range map[string]string{"": "tcp", "tcp": "tcp"} {
		client, err := NewHost(HostConfig{Key: testKey(2), Members: open, Prefer: prefer}, new(Stats))
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Connect(t.Context(), peer.AddrInfo{ID: server.ID(), Addrs: server.Addrs()}); err != nil {
			t.Fatal(err)
		}
		if got := client.Network().ConnsToPeer(server.ID())[0].ConnState().Transport; got != transport {
			t.Errorf("preferring %q: connected over %s", prefer, got)
		}
		client.Close()
	}
}
