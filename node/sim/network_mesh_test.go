package sim

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

const testRun = "grpo-7b"

// fleet is a set of mesh nodes on machines of one network. Node i lives at 10.0.0.i+1; the first is the trainer and
// everybody's bootstrap.
type fleet struct {
	t       *testing.T
	net     *Network
	log     zerolog.Logger
	keys    []crypto.PrivKey
	members *mesh.Members
	nodes   []*meshNode
}

type meshNode struct {
	*mesh.Mesh
	run     *mesh.Run
	host    host.Host
	store   mesh.Store
	ledger  *memoryLedger
	process *Process
	cancel  context.CancelFunc
	done    chan error
}

func newFleet(t *testing.T, n *Network, size int, log zerolog.Logger) *fleet {
	t.Helper()
	f := &fleet{t: t, net: n, log: log, nodes: make([]*meshNode, size)}
	var ids []peer.ID
	for i := range size {
		key := testKey(t, i)
		f.keys = append(f.keys, key)
		ids = append(ids, idOf(t, key))
	}
	f.members = mesh.NewMembers(ids...)
	for i := range size {
		f.start(i)
	}
	return f
}

func testKey(t *testing.T, i int) crypto.PrivKey {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.NewChaCha8([32]byte{byte(i), 7}))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func idOf(t *testing.T, key crypto.PrivKey) peer.ID {
	t.Helper()
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func ip(i int) string { return fmt.Sprintf("10.0.0.%d", i+1) }

func addrOf(i int) multiaddr.Multiaddr { return multiaddr.StringCast("/ip4/" + ip(i) + "/tcp/4001") }

// start brings node i up on its machine; with the ledger and store of the last time, if there was one.
func (f *fleet) start(i int) {
	f.t.Helper()
	node := &meshNode{process: f.net.Machine(ip(i)).Start(), done: make(chan error, 1)}
	if last := f.nodes[i]; last != nil {
		node.ledger, node.store = last.ledger, last.store
	} else {
		node.ledger, node.store = newMemoryLedger(), mesh.NewMemoryStore()
	}
	stats := new(mesh.Stats)
	var err error
	node.host, err = mesh.NewHost(mesh.HostConfig{
		Key: f.keys[i], Members: f.members, Listen: []multiaddr.Multiaddr{addrOf(i)}, Transport: node.process.Transport(),
	}, stats)
	if err != nil {
		f.t.Fatal(err)
	}
	cfg := mesh.Config{
		Role: mesh.RoleRollout, Members: f.members,
		Bootstrap: []peer.AddrInfo{{ID: idOf(f.t, f.keys[0]), Addrs: []multiaddr.Multiaddr{addrOf(0)}}},
	}
	if i == 0 {
		cfg.Role, cfg.Bootstrap = mesh.RoleTrainer, nil
	}
	log := f.log.With().Int("node", i).Logger()
	if node.Mesh, err = mesh.New(node.host, cfg, node.store, stats, log); err != nil {
		f.t.Fatal(err)
	}
	publishers := []peer.ID{idOf(f.t, f.keys[0])}
	if node.run, err = node.Join(mesh.RunConfig{Name: testRun, Publishers: publishers}, node.ledger); err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(f.t.Context())
	node.cancel = cancel
	go func() { node.done <- node.Run(ctx) }()
	f.nodes[i] = node
}

// kill ends a node's process, and then what is left of it in this program.
func (f *fleet) kill(i int) {
	f.t.Helper()
	node := f.nodes[i]
	node.process.Kill()
	node.cancel()
	if err := <-node.done; err != nil {
		f.t.Errorf("node %d: %v", i, err)
	}
	if err := node.host.Close(); err != nil {
		f.t.Errorf("node %d: close: %v", i, err)
	}
}

// close ends all nodes and the network.
func (f *fleet) close() {
	for i := range f.nodes {
		f.kill(i)
	}
	f.net.Close()
}

// publish announces version number with a payload of some blocks, and returns the manifest.
func (f *fleet) publish(number uint64, blocks int) (cid.Cid, *delta.Manifest) {
	f.t.Helper()
	trainer := f.nodes[0]
	m := &delta.Manifest{
		Schema: delta.Sum([]byte("schema")), Target: delta.Root{byte(number), 1}, Elements: 1, Changed: 1, Dense: 2,
		Coded: uint64(blocks * delta.MinChunk), ChunkSize: delta.MinChunk,
	}
	noise := rand.NewChaCha8(sha256.Sum256(fmt.Append(nil, number)))
	for range blocks {
		c := make([]byte, delta.MinChunk)
		noise.Read(c)
		m.Chunks = append(m.Chunks, f.put(trainer, c))
	}
	encoded, err := m.Encode()
	if err != nil {
		f.t.Fatal(err)
	}
	edge := mesh.Edge{Manifest: f.put(trainer, encoded.Root), Target: m.Target, Coded: m.Coded}
	head := mesh.Head{
		Run: testRun, Version: mesh.Version{Epoch: 1, Number: number}, Root: m.Target, Schema: m.Schema, Edge: edge,
		Created: 1_700_000_000_000,
	}
	if err := trainer.run.Publish(f.t.Context(), head, mesh.Catalogue{Run: testRun, Epoch: 1, Seq: number, Edges: []mesh.Edge{edge}},
		f.keys[0]); err != nil {
		f.t.Fatal(err)
	}
	return edge.Manifest, m
}

func (f *fleet) put(node *meshNode, data []byte) cid.Cid {
	f.t.Helper()
	id := delta.Sum(data)
	if err := node.store.Put(id, data); err != nil {
		f.t.Fatal(err)
	}
	return id
}

// heard tells whether node i knows version number.
func (f *fleet) heard(i int, number uint64) bool {
	h, _, _, ok := f.nodes[i].run.Latest()
	return ok && h.Version.Number == number
}

// eventually waits in virtual time until ok holds, and fails after limit.
func eventually(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for start := time.Now(); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Since(start) > limit {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// inFleet runs f in virtual time on a fleet with links of a latency.
func inFleet(t *testing.T, size int, shape Link, f func(t *testing.T, f *fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fleet := newFleet(t, New(rand.New(rand.NewPCG(1, 2)), shape), size, zerolog.Nop())
		defer fleet.close()
		f(t, fleet)
	})
}

// fetch has node i fetch all blocks of a manifest.
func (f *fleet) fetch(i int, id cid.Cid, m *delta.Manifest) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 2*time.Minute)
	defer cancel()
	if err := f.nodes[i].Fetch(ctx, id, m, nil); err != nil {
		f.t.Errorf("node %d: %v", i, err)
	}
}

// TestMeshOverNetwork: two real nodes exchange a head and blocks, which cost what the latency says.
func TestMeshOverNetwork(t *testing.T) {
	inFleet(t, 2, Link{Latency: trip}, func(t *testing.T, f *fleet) {
		eventually(t, 5*time.Second, "the two meet", func() bool { return len(f.nodes[0].Peers()) == 1 && len(f.nodes[1].Peers()) == 1 })
		time.Sleep(5 * time.Second) // until gossip has settled
		start := time.Now()
		id, m := f.publish(1, 3)
		<-f.nodes[1].run.Updates()
		if took := time.Since(start); took != trip {
			t.Errorf("the head took %s, want %s", took, trip)
		}
		start = time.Now()
		f.fetch(1, id, m)
		if took := time.Since(start); took%trip != 0 || took > 10*trip {
			t.Errorf("the blocks took %s, want a few times %s", took, trip)
		}
	})
}

// TestMeshPartition: a head does not pass a partition, and passes once it has healed.
func TestMeshPartition(t *testing.T) {
	inFleet(t, 4, Link{Latency: trip}, func(t *testing.T, f *fleet) {
		eventually(t, 5*time.Second, "all meet", func() bool { return len(f.nodes[3].Peers()) >= 1 && len(f.nodes[0].Peers()) == 3 })
		time.Sleep(5 * time.Second)
		f.net.Partition([]string{ip(0), ip(1)}, []string{ip(2), ip(3)})
		id, m := f.publish(1, 3)
		time.Sleep(time.Minute)
		if !f.heard(1, 1) || f.heard(2, 1) || f.heard(3, 1) {
			t.Fatal("the partition is none")
		}
		f.net.Heal()
		eventually(t, 2*time.Minute, "the others hear of the version", func() bool { return f.heard(2, 1) && f.heard(3, 1) })
		f.fetch(3, id, m)
	})
}

// TestMeshKillAndReturn: a killed node comes back with its key and address and gets what it missed; so does a fleet
// whose trainer was killed.
func TestMeshKillAndReturn(t *testing.T) {
	inFleet(t, 3, Link{Latency: trip}, func(t *testing.T, f *fleet) {
		eventually(t, 5*time.Second, "all meet", func() bool { return len(f.nodes[0].Peers()) == 2 })
		f.kill(2)
		f.publish(1, 3)
		eventually(t, 5*time.Second, "the trainer sees that one is gone", func() bool { return len(f.nodes[0].Peers()) == 1 })
		f.start(2)
		eventually(t, time.Minute, "the returned node hears of the version", func() bool { return f.heard(2, 1) })
		f.kill(0)
		f.start(0)
		id, m := f.publish(2, 3)
		eventually(t, 2*time.Minute, "all hear of the next", func() bool { return f.heard(1, 2) && f.heard(2, 2) })
		f.fetch(2, id, m)
	})
}

// TestFleetCost is five virtual minutes of six nodes, to be profiled: go test -run TestFleetCost -cpuprofile.
func TestFleetCost(t *testing.T) {
	inFleet(t, 6, Link{Latency: trip}, func(t *testing.T, f *fleet) {
		for number := range uint64(5) {
			f.publish(number+1, 10)
			time.Sleep(time.Minute)
		}
		if !f.heard(5, 5) {
			t.Error("the last version was not heard of")
		}
	})
}
