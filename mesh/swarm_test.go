package mesh

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta"
)

// payload is an edge whose chunks hold noise: a manifest, its ID and its chunks.
type payload struct {
	id     cid.Cid
	m      *delta.Manifest
	raw    []byte
	chunks [][]byte
}

func newPayload(t *testing.T, chunks int, seed uint64) payload {
	t.Helper()
	const size = delta.MinChunk
	p := payload{m: &delta.Manifest{
		Schema: delta.Sum([]byte("schema")), Target: delta.Root{1}, Elements: 1, Changed: 1, Dense: 2,
		Coded: uint64(chunks*size - 100), ChunkSize: size,
	}}
	noise := rand.NewChaCha8([32]byte{byte(seed), 7})
	for i := range chunks {
		c := make([]byte, size)
		if i == chunks-1 {
			c = c[:size-100]
		}
		noise.Read(c)
		p.chunks = append(p.chunks, c)
		p.m.Chunks = append(p.m.Chunks, delta.Sum(c))
	}
	e, err := p.m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	p.raw, p.id = e.Root, e.ID()
	return p
}

// fill puts the manifest and the chunks from one index up to another into a store.
func (p payload) fill(t *testing.T, s Store, from, to int) {
	t.Helper()
	err := s.Put(p.id, p.raw)
	for i := from; i < to; i++ {
		err = errors.Join(err, s.Put(p.m.Chunks[i], p.chunks[i]))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// check fails unless every byte is in a store.
func (p payload) check(t *testing.T, s Store) {
	t.Helper()
	for i, c := range p.m.Chunks {
		data, err := s.Get(c)
		if err != nil || !bytes.Equal(data, p.chunks[i]) {
			t.Fatalf("chunk %d: %v", i, err)
		}
	}
}

// testNode is an exchange on a host of its own.
type testNode struct {
	*Exchange
	host  host.Host
	store Store
	stats *Stats
	stop  context.CancelFunc
	done  chan struct{}
}

func startNode(t *testing.T, h host.Host, hello Hello, cfg ExchangeConfig) *testNode {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	n := &testNode{host: h, store: NewMemoryStore(), stats: new(Stats), stop: cancel, done: make(chan struct{})}
	if cfg.Seed == 0 {
		cfg.Seed = 1
	}
	n.Exchange = NewExchange(h, hello, n.store, cfg, n.stats, zerolog.Nop())
	go func() {
		defer close(n.done)
		n.Run(ctx)
	}()
	return n
}

// halt ends Run and waits for it.
func (n *testNode) halt() {
	n.stop()
	<-n.done
}

// crash halts a node and closes its host.
func (n *testNode) crash() {
	n.halt()
	n.host.Close()
}

// inSwarm runs f in virtual time on count connected nodes. The first is the trainer, the others are rollouts, each
// behind a link of 100 Mbit/s and 10 ms. What f returns with still runs is stopped.
func inSwarm(t *testing.T, count int, cluster func(i int) string, f func(t *testing.T, nodes []*testNode)) {
	t.Helper()
	virtually(t, func(t *testing.T, net *virtualNet) {
		hosts := connectedHosts(t, net, count)
		var nodes []*testNode
		for i, h := range hosts {
			hello := Hello{Role: RoleRollout, Cluster: cluster(i), Runs: []string{testRun}}
			if i == 0 {
				hello.Role = RoleTrainer
			}
			n := startNode(t, h, hello, ExchangeConfig{})
			net.stop = append(net.stop, n.halt)
			nodes = append(nodes, n)
		}
		f(t, nodes)
	})
}

func flat(int) string { return "a" }

func connectedHosts(t *testing.T, net *virtualNet, count int) []host.Host {
	t.Helper()
	team := newTeam(count)
	var hosts []host.Host
	for i := range count {
		h, _ := net.host(t, team.keys[i], team.members, new(Stats))
		for _, other := range hosts {
			connect(t, h, other)
		}
		hosts = append(hosts, h)
	}
	return hosts
}

func connect(t *testing.T, a, b host.Host) {
	t.Helper()
	if err := a.Connect(t.Context(), peer.AddrInfo{ID: b.ID(), Addrs: b.Network().ListenAddresses()}); err != nil {
		t.Fatal(err)
	}
}

// fetchAll downloads p to all nodes at once and checks that every byte is there.
func fetchAll(t *testing.T, p payload, nodes ...*testNode) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() { errs[i] = n.Fetch(ctx, p.id, p.m, nil) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		p.check(t, n.store)
	}
}

// egress is what a node sent, in payloads.
func (n *testNode) egress(p payload) float64 {
	return float64(n.stats.ChunkBytesSent.Load()) / float64(p.m.Coded)
}
