package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
	"github.com/sparsecast/sparsecast/node/files/faults"
)

// After a loss of power a slot may be torn, and hashing it takes a while: meanwhile no engine is led to it.
func TestNobodyIsLedToASlotBeforeItIsHashed(t *testing.T) {
	c := newCast(t, 2)
	news := c.record(t)
	hashed := 0
	for seed := range uint64(40) { // not every loss of power leaves a slot to hash
		synctest.Test(t, func(t *testing.T) { hashed += hashedAfter(t, c, news, seed) })
	}
	if hashed == 0 {
		t.Error("no slot was read after a loss of power")
	}
}

// Who hears that a node waits for its first version may load the base that lies under current.
func TestWhoWaitsLeadsToItsBase(t *testing.T) {
	c := newCast(t, 0)
	synctest.Test(t, func(t *testing.T) {
		v := c.enter(t, mesh.RoleRollout)
		m, look := v.disk.Mount(), v.disk.Mount()
		var n *part
		m.OnCall = func(op faults.Op) error {
			if n != nil && n.Status(t.Context()).State == api.StateWaiting {
				if _, err := look.Readlink("/data/current"); err != nil {
					t.Errorf("before the %s of %s the node waits, and current leads nowhere: %v", op.Call, op.Path, err)
				}
			}
			return nil
		}
		made, err := NewOn(Machine{FS: m, NewHost: alone, NoAPI: true}, v.cfg, v.log.logger())
		try(t, err)
		n = made.parts[0]
		try(t, v.run(t.Context(), made, func(ctx context.Context, n *part) error {
			return n.board.waitFor(ctx, func(b *board) bool { return b.state == api.StateWaiting })
		}))
		if root, err := rootOn(look, "/data/current"); err != nil || c.version(root) != 0 {
			t.Errorf("current leads to version %d of the run: %v", c.version(root), err)
		}
	})
}

// A check may find damage of what a slot held while the next version is brought up there. Once that is in place the damage
// is nobody's any more: current leads to the new version, and goes on to do so.
func TestDamageOfWhatIsReplacedIsForgotten(t *testing.T) {
	c := newCast(t, 3)
	news := c.record(t)
	synctest.Test(t, func(t *testing.T) {
		v := c.enter(t, mesh.RoleRollout)
		m, look := v.disk.Mount(), v.disk.Mount()
		var n *part
		found := 0
		m.OnCall = func(op faults.Op) error {
			if name := path.Base(path.Dir(op.Path)); op.Call == "rename" && path.Base(op.Path) == weightsFile {
				s := n.role.(*rollout).slots
				s.report(slot{name: name, root: delta.Root{1}}, harm{root: delta.Root{1}, blocks: []int{0}}, nil)
				found++
			}
			return nil
		}
		made, err := NewOn(Machine{FS: m, NewHost: alone, NoAPI: true}, v.cfg, v.log.logger())
		try(t, err)
		n = made.parts[0]
		try(t, v.run(t.Context(), made, func(ctx context.Context, n *part) error {
			for i := 1; i < len(news); i++ {
				if err := news[i].hear(ctx, n, c.publisher); err != nil {
					return err
				}
				if err := arrive(ctx, c, v, n, i); err != nil {
					return err
				}
				synctest.Wait()
				if root, err := rootOn(look, "/data/current"); err != nil || root != c.roots[i] {
					return fmt.Errorf("current leads to version %d after %d was served, %w", c.version(root), i, err)
				}
			}
			return nil
		}))
		if found != len(news)-1 {
			t.Errorf("damage was found %d times", found)
		}
	})
}

// hashedAfter returns how often a slot was read at the start after a loss of power.
func hashedAfter(t *testing.T, c *cast, news []broadcast, seed uint64) int {
	var hashed atomic.Int64 // several frames are read at a time
	v := c.enter(t, mesh.RoleRollout)
	v.live(t, crash{}, func(ctx context.Context, n *part) error {
		if err := news[1].hear(ctx, n, c.publisher); err != nil {
			return err
		}
		return arrive(ctx, c, v, n, 1)
	})
	v.disk.PowerLoss(rand.New(rand.NewPCG(seed, 1)))
	m, look := v.disk.Mount(), v.disk.Mount()
	news[2].lay(t, look) // what the loss has taken, too: no peer is there to ask for it
	var n *part
	m.OnCall = func(op faults.Op) error {
		if op.Call == "read" && n != nil && n.Status(t.Context()).State == api.StateStarting && strings.HasPrefix(op.Path, "/data/slots/a/") {
			hashed.Add(1)
			if target, err := look.Readlink("/data/current"); err == nil {
				t.Errorf("current leads to %s while %s is read", target, op.Path)
			}
		}
		return nil
	}
	made, err := NewOn(Machine{FS: m, NewHost: alone, NoAPI: true}, v.cfg, v.log.logger())
	try(t, err)
	n = made.parts[0]
	try(t, v.run(t.Context(), made, func(ctx context.Context, n *part) error {
		if err := news[2].hear(ctx, n, c.publisher); err != nil {
			return err
		}
		return arrive(ctx, c, v, n, 2)
	}))
	return int(hashed.Load())
}
