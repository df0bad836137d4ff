package mesh

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/sparsecast/sparsecast/delta"
)

func TestBlocksComeFromWhoeverHasThem(t *testing.T) {
	inSwarm(t, 4, flat, func(t *testing.T, nodes []*testNode) {
		b := bytes.Repeat([]byte("schema"), 50_000)
		id := delta.Sum(b)
		time.AfterFunc(5*time.Second, func() {
			if err := nodes[2].store.Put(id, b); err != nil {
				t.Error(err)
			}
		})
		got, err := nodes[1].Block(t.Context(), id, len(b))
		if err != nil || !bytes.Equal(got, b) || !nodes[1].store.Has(id) {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if got, err := nodes[3].Block(ctx, id, len(b)-1); err == nil {
			t.Errorf("got %d bytes against a limit of %d", len(got), len(b)-1)
		}
		if got := nodes[3].stats.PeersBanned.Load(); got > 0 {
			t.Errorf("%d honest peers banned for a block above the limit", got)
		}
		if _, err := nodes[1].Block(t.Context(), id, 10); err == nil {
			t.Error("got a block from the store against its limit")
		}
	})
}

func TestBlockWaitsForTheFirstPeer(t *testing.T) {
	virtually(t, func(t *testing.T, net *virtualNet) {
		team := newTeam(2)
		a, _ := net.host(t, team.keys[0], team.members, new(Stats))
		b, _ := net.host(t, team.keys[1], team.members, new(Stats))
		var nodes []*testNode
		for _, h := range []host.Host{a, b} {
			n := startNode(t, h, Hello{Role: RoleRelay, Runs: []string{testRun}}, ExchangeConfig{})
			net.stop = append(net.stop, n.halt)
			nodes = append(nodes, n)
		}
		block := []byte("manifest")
		if err := nodes[0].store.Put(delta.Sum(block), block); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Minute, func() { connect(t, a, b) })
		if got, err := nodes[1].Block(t.Context(), delta.Sum(block), 100); err != nil || !bytes.Equal(got, block) {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func TestBlockDoesNotWaitForSilentPeers(t *testing.T) {
	p := newPayload(t, 4, 1)
	withHostile(t, p, func(t *testing.T, source, fetcher *testNode, enemy host.Host) {
		raw := newRawPeer(t, enemy, fetcher.host, p, func(network.Stream, uint64, int) {})
		raw.open(controlProtocol).Write(frames(t, rolloutHello)) // nearer than the trainer, so asked first
		time.Sleep(time.Second)
		began := time.Now()
		got, err := fetcher.Block(t.Context(), p.id, delta.MaxBlock)
		if took := time.Since(began); err != nil || !bytes.Equal(got, p.raw) || took < blockHedge || took > 2*blockHedge {
			t.Errorf("got %d bytes in %v, %v", len(got), took, err)
		}
	})
}

// A peer that trickles its answer must not keep others from being asked again once they have the block.
func TestBlockDoesNotWaitForTricklers(t *testing.T) {
	p := newPayload(t, 4, 1)
	withHostile(t, p, func(t *testing.T, source, fetcher *testNode, enemy host.Host) {
		if err := source.store.Delete(p.id); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		raw := newRawPeer(t, enemy, fetcher.host, p, func(s network.Stream, id uint64, _ int) {
			s.Write(encodeHeading(id, statusOK, delta.MaxBlock))
			for ctx.Err() == nil {
				s.Write([]byte{0})
				pause(ctx, time.Second)
			}
		})
		raw.open(controlProtocol).Write(frames(t, rolloutHello))
		time.Sleep(time.Second)
		const late = 2500 * time.Millisecond // after the source said that it has none
		time.AfterFunc(late, func() { p.fill(t, source.store, 0, 0) })
		limited, stop := context.WithTimeout(t.Context(), late+blockRound+blockLongest)
		defer stop()
		if got, err := fetcher.Block(limited, p.id, delta.MaxBlock); err != nil || !bytes.Equal(got, p.raw) {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
	})
}
