package node

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// TestTrainerCrashesAnywhere ends a trainer before every change of its disk while it publishes. What it said is
// published stays, what is on offer can be delivered, and it goes on.
func TestTrainerCrashesAnywhere(t *testing.T) {
	c := newCast(t, 5)
	everyCrash(t, func(t *testing.T, at crash) int {
		v := c.enter(t, mesh.RoleTrainer)
		v.cfg.Keep = 2
		acked := -1 // nothing, not even the base: nobody has asked for it
		changes, _ := v.live(t, at, func(ctx context.Context, n *part) error {
			for i := 1; i < len(c.steps)-1; i++ {
				if _, err := n.Publish(ctx, api.PublishRequest{Path: c.step(i), Full: i == 3}); err != nil {
					return err
				}
				acked = i
			}
			return nil
		})
		v.live(t, crash{}, func(ctx context.Context, n *part) error {
			select {
			case <-n.role.(*trainer).prepared:
			case <-ctx.Done():
				return ctx.Err()
			}
			_, kept := n.role.(*trainer).slots.find(headOf(n).Root)
			if err := deliverable(ctx, c, n, acked); err != nil {
				return fmt.Errorf("after the crash: %w", err)
			}
			last := len(c.steps) - 1
			r, err := n.Publish(ctx, api.PublishRequest{Path: c.step(last)})
			if err != nil {
				return err
			}
			if kept && r.Changed == r.Elements {
				return fmt.Errorf("a full copy was sent")
			}
			return deliverable(ctx, c, n, last)
		})
		if left := v.leftovers(); len(left) > 0 {
			t.Errorf("left %v", left)
		}
		return changes
	})
}

// deliverable demands that the newest version is at least the one given, that all on offer is here, and that what is on
// offer leads from the newest state but one, or from nothing, to the newest.
func deliverable(ctx context.Context, c *cast, n *part, least int) error {
	head, catalogue := headOf(n), catalogueOf(n)
	if at := c.version(head.Root); at < least {
		return fmt.Errorf("newest is state %d (root %s), but %d was published", at, head.Root.Short(), least)
	}
	lib := n.role.(*trainer).library
	edges := offered(head, catalogue)
	if _, all := lib.whole(edges); !all {
		return fmt.Errorf("blocks of what is on offer are missing")
	}
	if len(edges) == 0 {
		return nil
	}
	path, err := Plan(c.roots, head.Root, edges)
	if err != nil || len(path) > 0 { // roots has them all
		return fmt.Errorf("plan: %d, %w", len(path), err)
	}
	last := edges[len(edges)-1]
	from := max(0, c.version(last.Base))
	return deliver(ctx, c, lib, last, from)
}

func headOf(n *part) mesh.Head {
	head, _, _, _ := n.run.Latest()
	return head
}

func catalogueOf(n *part) mesh.Catalogue {
	_, catalogue, _, _ := n.run.Latest()
	return catalogue
}

// deliver applies an edge to the state that it starts from.
func deliver(ctx context.Context, c *cast, lib library, e mesh.Edge, from int) error {
	manifests, err := lib.stored([]mesh.Edge{e})
	if err != nil {
		return err
	}
	m := manifests[0]
	schema, err := lib.schema(ctx, m.Schema)
	if err != nil {
		return err
	}
	old, err := c.state(from)
	if err != nil {
		return err
	}
	_, err = delta.ApplyEdge(ctx, m, lib.chunks(m), schema, old, delta.NewMemory(schema), delta.DecodeOptions{})
	return err
}

// TestRolloutCrashesAnywhere ends a rollout before every change of its disk while it brings versions up, switches to
// them, goes back to one that it is pinned to, and throws away what is not needed any more. Whatever an engine loads is
// a version at any time, and what is served never goes back unless the node is told so.
func TestRolloutCrashesAnywhere(t *testing.T) {
	c := newCast(t, 6)
	news := c.record(t)
	everyCrash(t, func(t *testing.T, at crash) int {
		v := c.enter(t, mesh.RoleRollout)
		served, pinned := 0, -1
		changes, crashed := v.live(t, at, func(ctx context.Context, n *part) error {
			var err error
			if served, err = follow(ctx, c, v, n, news[:4]); err != nil {
				return err
			}
			pinned = -2 // not known until the node says so
			if err := pinTo(ctx, n, 2); err != nil {
				return err
			}
			pinned = 2
			if err := arrive(ctx, c, v, n, 2); err != nil {
				return err
			}
			served = 2
			pinned = -2
			if _, err := n.Unpin(ctx); err != nil {
				return err
			}
			pinned = -1
			return arrive(ctx, c, v, n, 3)
		})
		if crashed && !at.power { // after a loss of power nobody vouches for slots before the node has looked at them
			if _, err := v.shown(c); err != nil {
				t.Fatal(err)
			}
		}
		v.live(t, crash{}, func(ctx context.Context, n *part) error {
			r := n.role.(*rollout)
			ctx, cancel := context.WithTimeout(ctx, 10*time.Hour) // of virtual time
			defer cancel()
			if err := n.board.waitFor(ctx, func(b *board) bool { return b.judged }); err != nil {
				return err
			}
			now, err := v.shown(c)
			if err != nil {
				return err
			}
			if pinned == -1 && !at.power && now < served {
				return fmt.Errorf("shows %d after a restart, %d was served", now, served)
			}
			if p := n.pinnedNumber(); pinned != -2 && p != pinned {
				return fmt.Errorf("pinned to %d after a restart, want %d", p, pinned)
			}
			if err := news[4].hear(ctx, n, c.publisher); err != nil {
				return err
			}
			if _, held := r.slots.find(c.roots[2]); pinned == 2 && held {
				if err := arrive(ctx, c, v, n, 2); err != nil {
					return err
				}
			}
			if _, err := n.Unpin(ctx); err != nil {
				return err
			}
			if err := arrive(ctx, c, v, n, 4); err != nil {
				return err
			}
			for i, b := range news[5:] { // what peers may have been fetching before the restart stays for a while
				if err := b.hear(ctx, n, c.publisher); err != nil {
					return err
				}
				if err := arrive(ctx, c, v, n, 5+i); err != nil {
					return err
				}
			}
			synctest.Wait() // it tidies up after it has switched
			return tidied(r, news[6])
		})
		if left := v.leftovers(); len(left) > 0 {
			t.Errorf("left %v", left)
		}
		return changes
	})
}
