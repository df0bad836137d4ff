package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/delta/safetensors"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
	"github.com/sparsecast/sparsecast/node/files"
	"github.com/sparsecast/sparsecast/node/files/faults"
)

// cast is what all tries of a test have in common.
type cast struct {
	trainerKey, rolloutKey []byte
	publisher              crypto.PrivKey
	id                     peer.ID
	steps                  [][]byte // checkpoint files: the base, then versions 1, 2, ...
	roots                  []delta.Root
}

func newCast(t *testing.T, versions int) *cast {
	t.Helper()
	c := &cast{}
	keys := make([][]byte, 2)
	for i := range keys {
		cfg, _ := newConfig(t, mesh.RoleRollout, "")
		b, err := readSmall(Machine{}.orThis().FS, cfg.Key, maxKeyFile)
		try(t, err)
		keys[i] = b
	}
	c.trainerKey, c.rolloutKey = keys[0], keys[1]
	var err error
	c.publisher, err = parseKey("key", c.trainerKey)
	try(t, err)
	c.id, err = peer.IDFromPrivateKey(c.publisher)
	try(t, err)
	c.draw(t, versions)
	return c
}

// draw makes checkpoints of two tensors and a few pages, each with some elements moved. The tensors are in two layers and
// so in two frames, which are written one after the other.
func (c *cast) draw(t *testing.T, versions int) {
	disk := faults.NewDisk(time.Now)
	m := disk.Mount()
	wide, bytes := make([]byte, 2*7000), make([]byte, 300)
	for i := range wide {
		wide[i] = byte(i*7 + i>>8)
	}
	tensors := []safetensors.Tensor{
		{Name: "layers.0.w", DType: "BF16", Shape: []uint64{70, 100}, Size: int64(len(wide))},
		{Name: "layers.1.x", DType: "U8", Shape: []uint64{300}, Size: int64(len(bytes))},
	}
	for v := range versions + 1 {
		w, err := safetensors.CreateOn(m, "/x.safetensors", tensors, nil)
		try(t, err)
		try(t, w.WriteAt(0, wide, 0))
		try(t, w.WriteAt(1, bytes, 0))
		try(t, w.Commit())
		b, err := disk.ReadFile("/x.safetensors")
		try(t, err)
		c.steps = append(c.steps, b)
		root, err := rootOn(m, "/x.safetensors")
		try(t, err)
		c.roots = append(c.roots, root)
		for i := v; i < len(wide)/2; i += 37 {
			wide[2*i]++
		}
		bytes[v]++
	}
}

func rootOn(fsys files.FS, path string) (delta.Root, error) {
	c, err := openStates(fsys, paths{"": path}, delta.GroupByLayer)
	if err != nil {
		return delta.Root{}, err
	}
	defer c.Close()
	return delta.RootOf(context.Background(), c, nil)
}

// enter puts a machine with the base checkpoint on the stage.
func (c *cast) enter(t *testing.T, role mesh.Role) *victim {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Role, cfg.Peers, cfg.Run = role, "open", "default"
	cfg.Data, cfg.Key, cfg.Base = "/data", "/etc/node.key", "/base"
	cfg.Poll, cfg.GroupBy = time.Minute, groupLayer
	key := c.trainerKey
	if role == mesh.RoleRollout {
		key, cfg.Publishers = c.rolloutKey, []string{c.id.String()}
	}
	v := &victim{cfg: cfg, disk: faults.NewDisk(time.Now), log: &lastLines{}}
	try(t, v.disk.WriteFile(cfg.Key, key, 0o600))
	try(t, v.disk.WriteFile("/base/"+weightsFile, c.steps[0], 0o644))
	try(t, v.disk.WriteFile("/base/config.json", []byte("{}"), 0o644))
	for i, b := range c.steps {
		try(t, v.disk.WriteFile(c.step(i), b, 0o644))
	}
	return v
}

func (c *cast) step(i int) string { return fmt.Sprintf("/runs/step_%d.safetensors", i) }

// version returns the number of a state, -1 for one that was never handed in.
func (c *cast) version(r delta.Root) int { return slices.Index(c.roots, r) }

// broadcast is one version as peers would bring it.
type broadcast struct {
	head      mesh.Head
	catalogue mesh.Catalogue
	blocks    map[cid.Cid][]byte
}

// hear lets a node have a version as if it came from peers.
func (b broadcast) hear(ctx context.Context, n *part, key crypto.PrivKey) error {
	synctest.Wait() // or the node, busy with the version before, might tidy these blocks away as not needed
	store := n.role.(*rollout).library.store
	for id, data := range b.blocks {
		if err := store.Put(id, data); err != nil {
			return err
		}
	}
	head, _, _, ok := n.run.Latest()
	if ok && head.Version.Compare(b.head.Version) >= 0 {
		return nil
	}
	return n.run.Publish(ctx, b.head, b.catalogue, key)
}

// lay puts the blocks into the data directory of a node that is not running. One that waits for a block from its peers
// would not look again.
func (b broadcast) lay(t *testing.T, fsys files.FS) {
	t.Helper()
	dir, err := files.Open(fsys, "/data")
	try(t, err)
	store, err := mesh.NewDiskStore(dir)
	try(t, err)
	for id, data := range b.blocks {
		try(t, store.Put(id, data))
	}
	try(t, store.Sync())
}

// taken returns what a trainer has on offer.
func taken(n *part) (b broadcast, err error) {
	b.head, b.catalogue, _, _ = n.run.Latest()
	b.blocks = make(map[cid.Cid][]byte)
	store := n.role.(*trainer).library.store
	all, err := store.List()
	for _, id := range all {
		data, e := store.Get(id)
		err = errors.Join(err, e)
		b.blocks[id] = data
	}
	return b, err
}

// record plays a trainer and returns what it published, the base first.
func (c *cast) record(t *testing.T) (news []broadcast) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		v := c.enter(t, mesh.RoleTrainer)
		v.cfg.Keep = 2
		v.live(t, crash{}, func(ctx context.Context, n *part) error {
			zero := uint64(0)
			if _, err := n.Publish(ctx, api.PublishRequest{Path: c.step(0), Number: &zero}); err != nil {
				return err
			}
			b, err := taken(n)
			news = append(news, b)
			for i := 1; err == nil && i < len(c.steps); i++ {
				if _, err = n.Publish(ctx, api.PublishRequest{Path: c.step(i), Full: i == 3}); err == nil {
					b, err = taken(n)
					news = append(news, b)
				}
			}
			return err
		})
	})
	return news
}

// state returns a checkpoint of the cast in memory.
func (c *cast) state(i int) (delta.State, error) {
	disk := faults.NewDisk(time.Now)
	if err := disk.WriteFile("/x.safetensors", c.steps[i], 0o600); err != nil {
		return nil, err
	}
	return openStates(disk.Mount(), paths{"": "/x.safetensors"}, delta.GroupByLayer)
}
