package mesh

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// during runs f beside the rest of a test, which ends it by calling stop.
func during(t *testing.T, f func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { f(ctx) })
	return func() { cancel(); work.Wait() }
}

// fetchWithin downloads p beside nuisances, without which it takes less than a second.
func fetchWithin(t *testing.T, limit time.Duration, p payload, n *testNode) {
	t.Helper()
	began := time.Now()
	fetchAll(t, p, n)
	if took := time.Since(began); took > limit {
		t.Errorf("took %v, want at most %v", took, limit)
	}
}

// TestEndlessNewsKeepNoChunk has a claimant that never fetches anything tell again and again what it gained.
func TestEndlessNewsKeepNoChunk(t *testing.T) {
	p := newPayload(t, 64, 1)
	none, one := aboutManifest(kindHave, p.id), aboutManifest(kindHave, p.id)
	one.Bits = newBitmap(64)
	bitmap(one.Bits).set(0)
	for name, news := range map[string]func(i int) []control{
		"nothing, one": func(int) []control { return []control{none, one} },
		"one by one": func(i int) []control {
			more := aboutManifest(kindMore, p.id)
			more.Indices = []uint32{uint32(i % 64)}
			return []control{more}
		},
	} {
		t.Run(name, func(t *testing.T) {
			withHostile(t, p, func(t *testing.T, source, fetcher *testNode, enemy host.Host) {
				raw := newRawPeer(t, enemy, fetcher.host, p, func(s network.Stream, id uint64, _ int) {
					s.Write(encodeHeading(id, statusAbsent, 0))
				})
				defer during(t, func(ctx context.Context) {
					s := raw.open(controlProtocol)
					s.Write(frames(t, rolloutHello, aboutManifest(kindWant, p.id)))
					for i := 0; ctx.Err() == nil; i++ {
						pause(ctx, 700*time.Millisecond)
						s.Write(frames(t, news(i)...))
					}
				})()
				fetchWithin(t, 5*time.Second, p, fetcher)
			})
		})
	}
}

// TestFlappingMembersKeepNoChunk has claimants that connect anew before anybody's patience with them ends.
func TestFlappingMembersKeepNoChunk(t *testing.T) {
	p := newPayload(t, 64, 1)
	virtually(t, func(t *testing.T, net *virtualNet) {
		net.stop = append(net.stop, func() { time.Sleep(time.Second) })
		hosts := connectedHosts(t, net, 5)
		source := startNode(t, hosts[0], Hello{RoleTrainer, "a", []string{testRun}}, ExchangeConfig{})
		fetcher := startNode(t, hosts[1], Hello{RoleRollout, "a", []string{testRun}}, ExchangeConfig{})
		net.stop = append(net.stop, source.halt, fetcher.halt)
		p.fill(t, source.store, 0, 64)
		for k, h := range hosts[2:] {
			newRawPeer(t, h, fetcher.host, p, func(network.Stream, uint64, int) {})
			defer during(t, func(ctx context.Context) {
				pause(ctx, time.Duration(k)*250*time.Millisecond)
				for ctx.Err() == nil {
					flap(ctx, t, h, fetcher.host, p)
					pause(ctx, 600*time.Millisecond)
				}
			})()
		}
		time.Sleep(2 * time.Second)
		fetchWithin(t, 5*time.Second, p, fetcher)
	})
}

// flap connects h to another host anew and claims p there.
func flap(ctx context.Context, t *testing.T, h, to host.Host, p payload) {
	h.Network().ClosePeer(to.ID())
	if err := h.Connect(ctx, peer.AddrInfo{ID: to.ID(), Addrs: to.Network().ListenAddresses()}); err != nil {
		return
	}
	if s, err := h.NewStream(ctx, to.ID(), controlProtocol); err == nil {
		s.Write(frames(t, rolloutHello, aboutManifest(kindWant, p.id)))
	}
}
