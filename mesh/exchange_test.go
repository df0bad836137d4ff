package mesh

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
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
	raw, err := p.m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	p.raw, p.id = raw, delta.Sum(raw)
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
			hello := Hello{Role: RoleRollout, Cluster: cluster(i), Run: testRun}
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

func TestSourceSendsLittleMoreThanOnePayload(t *testing.T) {
	inSwarm(t, 5, flat, func(t *testing.T, nodes []*testNode) {
		p := newPayload(t, 128, 1)
		p.fill(t, nodes[0].store, 0, 128)
		began := time.Now()
		fetchAll(t, p, nodes[1:]...)
		t.Logf("source egress %.2f payloads, %v", nodes[0].egress(p), time.Since(began))
		if got := nodes[0].egress(p); got > 1.2 {
			t.Errorf("the source sent %.2f payloads, want at most 1.2", got)
		}
		if got := nodes[1].stats.ChunksReceived.Load(); got != 128 {
			t.Errorf("%d chunks received, want 128", got)
		}
	})
}

func TestClustersFetchEachChunkOnce(t *testing.T) {
	two := func(i int) string { return []string{"t", "a", "b", "a", "b"}[i] }
	inSwarm(t, 5, two, func(t *testing.T, nodes []*testNode) {
		p := newPayload(t, 64, 1)
		p.fill(t, nodes[0].store, 0, 64)
		fetchAll(t, p, nodes[1:]...)
		if got := nodes[0].egress(p); got > 2.2 {
			t.Errorf("the source sent %.2f payloads to two clusters", got)
		}
	})
}

func TestDownloadsFinishWithoutTheSource(t *testing.T) {
	inSwarm(t, 5, flat, func(t *testing.T, nodes []*testNode) {
		p := newPayload(t, 64, 1)
		p.fill(t, nodes[0].store, 0, 64)
		fetchAll(t, p, nodes[1])
		nodes[0].crash()
		fetchAll(t, p, nodes[2:]...)
		if got := nodes[1].egress(p); got > 2.5 {
			t.Errorf("the only holder sent %.2f payloads to three that share", got)
		}
	})
}

func TestSourceDiesWhileOthersFetch(t *testing.T) {
	inSwarm(t, 5, flat, func(t *testing.T, nodes []*testNode) {
		p := newPayload(t, 128, 1)
		p.fill(t, nodes[0].store, 0, 128)
		p.fill(t, nodes[1].store, 0, 128)
		time.AfterFunc(100*time.Millisecond, nodes[0].crash)
		fetchAll(t, p, nodes[2:]...)
	})
}

// An owner that dies with its chunks is replaced, and whoever comes back takes up where it was.
func TestFetcherDiesWhileOthersFetch(t *testing.T) {
	inSwarm(t, 5, flat, func(t *testing.T, nodes []*testNode) {
		p := newPayload(t, 128, 1)
		p.fill(t, nodes[0].store, 0, 128)
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { gone <- nodes[4].Fetch(ctx, p.id, p.m, nil) }()
		time.AfterFunc(100*time.Millisecond, nodes[4].crash)
		fetchAll(t, p, nodes[1:4]...)
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("the dead node's download: %v", err)
		}
	})
}

func TestDownloadsResume(t *testing.T) {
	inSwarm(t, 2, flat, func(t *testing.T, nodes []*testNode) {
		p := newPayload(t, 64, 1)
		p.fill(t, nodes[0].store, 0, 64)
		p.fill(t, nodes[1].store, 0, 40)
		var first, last int
		err := nodes[1].Fetch(t.Context(), p.id, p.m, func(done, total int) {
			if first == 0 {
				first = done
			}
			last = done
		})
		if err != nil || first != 40 || last != 64 {
			t.Errorf("progress went from %d to %d, %v", first, last, err)
		}
		if got := nodes[0].stats.ChunksSent.Load(); got != 24 {
			t.Errorf("%d chunks sent, want the 24 missing ones", got)
		}
	})
}

func TestDownloadsWaitForAHolder(t *testing.T) {
	inSwarm(t, 3, flat, func(t *testing.T, nodes []*testNode) {
		p := newPayload(t, 16, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := nodes[1].Fetch(ctx, p.id, p.m, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without a holder: %v", err)
		}
		// The blocks come into the store by another way than a download, after the want.
		time.AfterFunc(5*time.Second, func() { p.fill(t, nodes[0].store, 0, 16) })
		fetchAll(t, p, nodes[1:]...)
	})
}

func TestLateJoinersAskTheNearest(t *testing.T) {
	inSwarm(t, 4, flat, func(t *testing.T, nodes []*testNode) {
		p := newPayload(t, 64, 1)
		for _, n := range nodes[:3] {
			p.fill(t, n.store, 0, 64)
		}
		fetchAll(t, p, nodes[3])
		if got := nodes[0].stats.ChunksSent.Load(); got > 0 {
			t.Errorf("the trainer sent %d chunks that rollouts hold", got)
		}
	})
}

func TestSeveralDownloadsAtOnce(t *testing.T) {
	inSwarm(t, 3, flat, func(t *testing.T, nodes []*testNode) {
		var all sync.WaitGroup
		for seed := range uint64(4) {
			p := newPayload(t, 32, seed)
			p.fill(t, nodes[0].store, 0, 32)
			all.Go(func() { fetchAll(t, p, nodes[1:]...) })
			all.Go(func() { fetchAll(t, p, nodes[1]) }) // the same one twice
		}
		all.Wait()
	})
}

// fullStore takes no more than some blocks.
type fullStore struct {
	Store
	mu   sync.Mutex
	room int
}

func (s *fullStore) Put(id cid.Cid, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.room--; s.room < 0 {
		return syscall.ENOSPC
	}
	return s.Store.Put(id, data)
}

func TestFullStoreEndsADownload(t *testing.T) {
	inSwarm(t, 2, flat, func(t *testing.T, nodes []*testNode) {
		p := newPayload(t, 16, 1)
		p.fill(t, nodes[0].store, 0, 16)
		nodes[1].Exchange.store = &fullStore{Store: nodes[1].store, room: 5}
		err := nodes[1].Fetch(t.Context(), p.id, p.m, nil)
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("with a full store: %v", err)
		}
	})
}

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
			n := startNode(t, h, Hello{Role: RoleRelay, Run: testRun}, ExchangeConfig{})
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

func TestOtherRunsAreNotServed(t *testing.T) {
	virtually(t, func(t *testing.T, net *virtualNet) {
		p := newPayload(t, 4, 1)
		var nodes []*testNode
		for i, h := range connectedHosts(t, net, 2) {
			n := startNode(t, h, Hello{Role: RoleRollout, Run: []string{"this", "that"}[i]}, ExchangeConfig{})
			net.stop = append(net.stop, n.halt)
			nodes = append(nodes, n)
		}
		p.fill(t, nodes[0].store, 0, 4)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := nodes[1].Fetch(ctx, p.id, p.m, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("fetch from another run: %v", err)
		}
		if got := nodes[0].stats.ChunksSent.Load(); got > 0 {
			t.Errorf("%d chunks sent to another run", got)
		}
		if infos := nodes[0].Peers(); len(infos) != 1 || infos[0].Role != RoleRollout {
			t.Errorf("peers: %+v", infos)
		}
	})
}

func TestPeersAreDescribed(t *testing.T) {
	inSwarm(t, 2, flat, func(t *testing.T, nodes []*testNode) {
		p := newPayload(t, 4, 1)
		p.fill(t, nodes[0].store, 0, 4)
		fetchAll(t, p, nodes[1])
		time.Sleep(5 * time.Second)
		infos := nodes[0].Peers()
		if len(infos) != 1 {
			t.Fatalf("peers: %+v", infos)
		}
		i := infos[0]
		if i.ID != nodes[1].host.ID() || i.Role != RoleRollout || i.Cluster != "a" || i.Addr == "" || i.SentBytes != p.m.Coded {
			t.Errorf("peer: %+v", i)
		}
		if i.RTT < 20*time.Millisecond || i.RTT > 30*time.Millisecond {
			t.Errorf("round trip %v, want 20 ms", i.RTT)
		}
		if got := nodes[0].PeerSent(); got[RoleRollout] != p.m.Coded || got[RoleTrainer] != 0 {
			t.Errorf("sent by role: %v", got)
		}
	})
}

func TestVanishedPeersAreCutOffSoon(t *testing.T) {
	virtually(t, func(t *testing.T, net *virtualNet) {
		team := newTeam(2)
		a, ipA := net.host(t, team.keys[0], team.members, new(Stats))
		b, ipB := net.host(t, team.keys[1], team.members, new(Stats))
		connect(t, a, b)
		var nodes []*testNode
		for _, h := range []host.Host{a, b} {
			n := startNode(t, h, Hello{Role: RoleRollout, Run: testRun}, ExchangeConfig{})
			net.stop = append(net.stop, n.halt)
			nodes = append(nodes, n)
		}
		time.Sleep(20 * time.Second)
		if len(nodes[0].Peers()) != 1 {
			t.Fatal("a quiet peer was cut off")
		}
		net.cut(ipA, ipB)
		time.Sleep(10 * time.Second)
		if len(nodes[0].Peers()) != 0 {
			t.Error("a vanished peer is still here after ten seconds")
		}
	})
}
