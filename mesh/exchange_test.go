package mesh

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/host"
)

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

func TestOtherRunsAreNotServed(t *testing.T) {
	virtually(t, func(t *testing.T, net *virtualNet) {
		p := newPayload(t, 4, 1)
		var nodes []*testNode
		for i, h := range connectedHosts(t, net, 2) {
			n := startNode(t, h, Hello{Role: RoleRollout, Runs: [][]string{{"this"}, {"that"}}[i]}, ExchangeConfig{})
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
			n := startNode(t, h, Hello{Role: RoleRollout, Runs: []string{testRun}}, ExchangeConfig{})
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
