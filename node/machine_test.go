package node

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
	"github.com/sparsecast/sparsecast/node/files/faults"
)

// memoryNode is a node on a disk in memory; its network is the real loopback.
type memoryNode struct {
	*Node
	*part // in its only run
	cfg   *Config
	disk  *faults.Disk
	mount *faults.Mount
	end   func()
}

// newMemoryConfig puts key and base of a node on a new disk.
func newMemoryConfig(t *testing.T, role mesh.Role, base string) (*Config, *faults.Disk, peer.ID) {
	t.Helper()
	real, id := newConfig(t, role, "")
	disk := faults.NewDisk(time.Now)
	cfg := *real
	cfg.Data, cfg.Key, cfg.Base, cfg.Bootstrap = "/data", "/etc/node.key", "/base/model.safetensors", "/etc/bootstrap.txt"
	onto(t, disk, cfg.Key, real.Key)
	onto(t, disk, cfg.Base, base)
	try(t, disk.WriteFile("/base/config.json", []byte("{}"), 0o644))
	try(t, disk.WriteFile(cfg.Bootstrap, nil, 0o644))
	cfg.Base = "/base"
	return &cfg, disk, id
}

// onto copies a file of this machine to a disk.
func onto(t *testing.T, disk *faults.Disk, to, from string) {
	t.Helper()
	b, err := readSmall(Machine{}.orThis().FS, from, 1<<20)
	try(t, err)
	try(t, disk.WriteFile(to, b, 0o600))
}

func startMemory(t *testing.T, cfg *Config, disk *faults.Disk) *memoryNode {
	t.Helper()
	n := &memoryNode{cfg: cfg, disk: disk, mount: disk.Mount()}
	log := zerolog.New(testWriter{t}).Level(zerolog.InfoLevel).With().Str("node", string(cfg.Role)).Logger()
	var err error
	if n.Node, err = NewOn(Machine{FS: n.mount, NoAPI: true}, cfg, log); err != nil {
		t.Fatal(err)
	}
	n.part = n.parts[0]
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	ended := false
	n.end = func() {
		if ended {
			return
		}
		ended = true
		n.mount.Kill()
		cancel()
		<-done // a process that is killed has nothing to say
		_ = n.Close()
	}
	t.Cleanup(n.end)
	return n
}

// wantState fails unless the version is pulled and the link current leads to it.
func (n *memoryNode) wantState(t *testing.T, r api.PublishResult) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := n.Pull(ctx, api.PullRequest{Number: &r.Number, Epoch: &r.Epoch})
	if err != nil {
		t.Fatalf("pull %d: %v; status %+v", r.Number, err, n.Status(ctx))
	}
	look := n.disk.Mount()
	defer look.Kill()
	for _, place := range []string{got.Path, "/data/current"} {
		c, err := delta.OpenCheckpointOn(look, place)
		try(t, err)
		root, err := delta.RootOf(ctx, c, nil)
		c.Close()
		try(t, err)
		if root != r.Root {
			t.Fatalf("version %d at %s has root %s, want %s", r.Number, place, root, r.Root)
		}
	}
}

// A whole trainer and a whole rollout live on disks in memory, and go on after the power fails in the midst of it.
func TestNodesOutliveLossOfPower(t *testing.T) {
	steps := series(t, 6)
	trainerCfg, trainerDisk, id := newMemoryConfig(t, mesh.RoleTrainer, steps[0])
	rolloutCfg, rolloutDisk, _ := newMemoryConfig(t, mesh.RoleRollout, steps[0])
	rolloutCfg.Publishers = []string{id.String()}
	trainer := startMemory(t, trainerCfg, trainerDisk)
	meet := func() {
		try(t, rolloutDisk.WriteFile(rolloutCfg.Bootstrap, []byte(strings.Join(trainer.addrs(), "\n")), 0o644))
	}
	meet()
	rollout := startMemory(t, rolloutCfg, rolloutDisk)
	for i, path := range steps[1:] {
		onto(t, trainerDisk, "/runs/step.safetensors", path)
		r, err := trainer.Publish(t.Context(), api.PublishRequest{Path: "/runs/step.safetensors"})
		try(t, err)
		rollout.wantState(t, r)
		if got, err := rolloutDisk.ReadFile("/data/current/config.json"); err != nil || string(got) != "{}" {
			t.Errorf("beside the weights: %q, %v", got, err)
		}
		rng := rand.New(rand.NewPCG(uint64(i), 0))
		trainerDisk.PowerLoss(rng)
		rolloutDisk.PowerLoss(rng)
		trainer.end()
		rollout.end()
		trainer = startMemory(t, trainerCfg, trainerDisk)
		meet()
		rollout = startMemory(t, rolloutCfg, rolloutDisk)
		if s := trainer.head(t); s.Number != r.Number || s.Root != r.Root {
			t.Fatalf("the trainer forgot version %d: goes on from %+v", r.Number, s)
		}
	}
	for _, name := range trainerDisk.Files() {
		if strings.HasPrefix(filepath.Base(name), ".tmp-") {
			t.Errorf("left %s", name)
		}
	}
}

// head waits until a node knows a version, and returns it.
func (n *memoryNode) head(t *testing.T) api.VersionInfo {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	try(t, n.board.waitFor(ctx, func(b *board) bool { return b.latest != nil && b.served != nil }))
	return *n.Status(ctx).Latest
}
