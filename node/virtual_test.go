package node_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/delta/safetensors"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node"
	"github.com/sparsecast/sparsecast/node/api"
	"github.com/sparsecast/sparsecast/node/files/faults"
	"github.com/sparsecast/sparsecast/node/sim"
)

// virtual is a run of whole nodes on a simulated network, with disks in memory, in virtual time. The first one is the
// trainer, which all believe.
type virtual struct {
	t     *testing.T
	net   *sim.Network
	nodes []*virtualNode
	steps [][]byte // the states that the trainer gets to, the base first
}

type virtualNode struct {
	node.ForTest
	key  crypto.PrivKey
	ip   string
	id   peer.ID
	addr string
	disk *faults.Disk
	cfg  *node.Config
	stop func()
}

// inVirtualRun runs f in virtual time, with a trainer that starts from the first of some states.
func inVirtualRun(t *testing.T, steps [][]byte, shape sim.Link, prepare func(*node.Config), f func(t *testing.T, v *virtual)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		v := &virtual{t: t, net: sim.New(rand.New(rand.NewPCG(1, 2)), shape), steps: steps}
		defer func() {
			for _, n := range v.nodes {
				n.stop()
			}
			v.net.Close()
		}()
		v.start(mesh.RoleTrainer, true, prepare)
		f(t, v)
	})
}

// start starts a node that knows those who are there already.
func (v *virtual) start(role mesh.Role, base bool, prepare func(*node.Config)) *virtualNode {
	v.t.Helper()
	return v.startAs(len(v.nodes), role, base, prepare)
}

// startAs is start with the key of that number, which another node may have too.
func (v *virtual) startAs(key int, role mesh.Role, base bool, prepare func(*node.Config)) *virtualNode {
	v.t.Helper()
	i, ip := len(v.nodes), v.nextIP()
	n := &virtualNode{ip: ip, addr: "/ip4/" + ip + "/tcp/4001", disk: faults.NewDisk(time.Now)}
	cfg := node.DefaultConfig()
	cfg.Role, cfg.Data, cfg.Key, cfg.Peers, cfg.Bootstrap, cfg.Listen = role, "/data", "/node.key", "open", "/bootstrap.txt", []string{n.addr}
	n.key, n.id = v.furnish(n.disk, key)
	if base {
		cfg.Base = "/base.safetensors"
		v.put(n.disk, cfg.Base, v.steps[0])
	}
	if i > 0 {
		cfg.Publishers = []string{v.nodes[0].id.String()}
	}
	if prepare != nil {
		prepare(cfg)
	}
	n.cfg = cfg
	v.boot(n)
	v.nodes = append(v.nodes, n)
	return n
}

// restart ends a node and starts it again with what its disk holds. Its counters begin anew.
func (v *virtual) restart(n *virtualNode) {
	v.t.Helper()
	n.stop()
	v.boot(n)
}

func (v *virtual) boot(n *virtualNode) {
	v.t.Helper()
	process, mount := v.net.Machine(n.ip).Start(), n.disk.Mount()
	machine := node.Machine{FS: mount, NoAPI: true, NewHost: func(c mesh.HostConfig, s *mesh.Stats) (host.Host, error) {
		c.Transport = process.Transport()
		return mesh.NewHost(c, s)
	}}
	inner, err := node.NewOn(machine, n.cfg, zerolog.Nop())
	v.try(err)
	ctx, cancel := context.WithCancel(v.t.Context())
	done := make(chan error, 1)
	go func() { done <- inner.Run(ctx) }()
	ended := false
	n.stop = func() {
		if ended {
			return
		}
		ended = true
		process.Kill()
		cancel()
		v.try(<-done)
		v.try(inner.Close())
		mount.Kill()
	}
	n.ForTest = node.Inside(inner)
}

// nextIP returns the address of the node that is started next.
func (v *virtual) nextIP() string { return fmt.Sprintf("10.0.0.%d", len(v.nodes)+1) }

// furnish puts the key of that number and a list of the other nodes on a disk.
func (v *virtual) furnish(disk *faults.Disk, number int) (crypto.PrivKey, peer.ID) {
	v.t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.NewChaCha8([32]byte{byte(number), 9}))
	v.try(err)
	id, err := peer.IDFromPrivateKey(key)
	v.try(err)
	raw, err := crypto.MarshalPrivateKey(key)
	v.try(err)
	v.try(disk.WriteFile("/node.key", []byte(base64.StdEncoding.EncodeToString(raw)+"\n"), 0o600))
	var list strings.Builder
	for _, n := range v.nodes {
		if n.id != id {
			fmt.Fprintf(&list, "%s/p2p/%s\n", n.addr, n.id)
		}
	}
	v.try(disk.WriteFile("/bootstrap.txt", []byte(list.String()), 0o600))
	return key, id
}

// put writes a checkpoint of one bf16 tensor to a disk.
func (v *virtual) put(disk *faults.Disk, path string, state []byte) {
	v.t.Helper()
	m := disk.Mount()
	defer m.Kill()
	w, err := safetensors.CreateOn(m, path, []safetensors.Tensor{
		{Name: "w", DType: "BF16", Shape: []uint64{uint64(len(state) / 2)}, Size: int64(len(state))},
	}, nil)
	v.try(err)
	v.try(w.WriteAt(0, state, 0))
	v.try(w.Commit())
}

// base returns the root of the state that all start from.
func (v *virtual) base() delta.Root {
	v.t.Helper()
	m := v.nodes[0].disk.Mount()
	defer m.Kill()
	c, err := delta.OpenCheckpointOn(m, "/base.safetensors")
	v.try(err)
	defer c.Close()
	root, err := delta.RootOf(v.t.Context(), c, nil)
	v.try(err)
	return root
}

// publish has the trainer publish a step, and waits for what it does in the background.
func (v *virtual) publish(step int) api.PublishResult {
	v.t.Helper()
	return v.publishAt(v.nodes[0], step)
}

func (v *virtual) publishAt(trainer *virtualNode, step int) api.PublishResult {
	v.t.Helper()
	return v.publishAs(trainer, step, api.PublishRequest{})
}

// publishAs has a trainer publish a step as a request says.
func (v *virtual) publishAs(trainer *virtualNode, step int, req api.PublishRequest) api.PublishResult {
	v.t.Helper()
	v.put(trainer.disk, "/step.safetensors", v.steps[step])
	req.Path = "/step.safetensors"
	r, err := trainer.Publish(v.t.Context(), req)
	v.try(err)
	synctest.Wait()
	return r
}

// follows waits until a node serves a version, and returns how long that took.
func (v *virtual) follows(n *virtualNode, r api.PublishResult) time.Duration {
	v.t.Helper()
	begun := time.Now()
	ctx, cancel := context.WithTimeout(v.t.Context(), 10*time.Minute)
	defer cancel()
	got, err := n.Pull(ctx, api.PullRequest{Number: &r.Number, Epoch: &r.Epoch})
	if err != nil || got.Version.Root != r.Root {
		v.t.Fatalf("serves %+v, %v, want %+v; status %+v", got, err, r, n.Status(ctx))
	}
	return time.Since(begun)
}

// waitFor waits until a node does what it should by its status.
func (v *virtual) waitFor(n *virtualNode, what string, ok func(api.Status) bool) api.Status {
	v.t.Helper()
	for end := time.Now().Add(10 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		s := n.Status(v.t.Context())
		if ok(s) {
			return s
		}
		if time.Now().After(end) {
			v.t.Fatalf("does not %s: status %+v", what, s)
		}
	}
}

func (v *virtual) try(err error) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
}

// trained returns the states of a bf16 tensor that is trained: a twentieth of it moves at every step, by a step on the
// grid of its values.
func trained(elements, steps int) [][]byte {
	rng := rand.New(rand.NewPCG(4, 0))
	data := make([]byte, 2*elements)
	for i := range elements {
		data[2*i], data[2*i+1] = byte(rng.Uint32()), 0x3c+byte(rng.Uint32()%2)
	}
	states := [][]byte{slices.Clone(data)}
	for range steps {
		for range elements / 20 {
			data[2*rng.IntN(elements)] += byte(2*rng.IntN(2)) - 1
		}
		states = append(states, slices.Clone(data))
	}
	return states
}
