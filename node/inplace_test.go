package node

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// A host with one slot keeps one copy, through updates, harm and restarts.
func TestOneSlot(t *testing.T) {
	steps := series(t, 6)
	trainer, rollout := pairUp(t, steps[0], func(c *Config) { c.Slots = 1 })
	for _, path := range steps[1:4] {
		rollout.mustPull(t, trainer.mustPublish(t, path).Number, path)
	}
	wantOneCopy(t, rollout.cfg)
	damage(t, filepath.Join(rollout.Status(t.Context()).Path, weightsFile))
	if r, err := rollout.Check(t.Context()); err != nil || !r.Slots[0].Damaged || !r.Slots[0].Repaired {
		t.Errorf("checked %+v, %v", r, err)
	}
	rollout.mustPull(t, 3, steps[3])
	damage(t, filepath.Join(rollout.Status(t.Context()).Path, weightsFile))
	rollout.mustPull(t, trainer.mustPublish(t, steps[4]).Number, steps[4])
	rollout.stop()
	rollout = startNode(t, rollout.cfg)
	rollout.mustPull(t, 4, steps[4])
	rollout.mustPull(t, trainer.mustPublish(t, steps[5]).Number, steps[5])
	wantOneCopy(t, rollout.cfg)
}

func wantOneCopy(t *testing.T, cfg *Config) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(cfg.Data, "slots", "*", weightsFile+"*"))
	own := 0
	for _, f := range found {
		if !strings.Contains(f, "/base/") {
			own++
		}
	}
	if err != nil || own != 1 {
		t.Errorf("copies %v, %v", found, err)
	}
}

// Going from two slots to one keeps the version that is served.
func TestOneSlotOfTwo(t *testing.T) {
	steps := series(t, 4)
	trainer, rollout := pairUp(t, steps[0])
	for _, path := range steps[1:3] {
		rollout.mustPull(t, trainer.mustPublish(t, path).Number, path)
	}
	rollout.stop()
	rollout.cfg.Slots = 1
	rollout = startNode(t, rollout.cfg)
	rollout.waitFor(t, "the version served", func(s api.Status) bool { return s.Served != nil && s.Served.Number == 2 })
	wantOneCopy(t, rollout.cfg)
	rollout.mustPull(t, trainer.mustPublish(t, steps[3]).Number, steps[3])
}

// TestOneSlotCrashesAnywhere ends a rollout that has one slot before every change of its disk. No engine ever loads a
// mixture, and an update that was cut short is finished with what is here.
func TestOneSlotCrashesAnywhere(t *testing.T) {
	c := newCast(t, 4)
	news := c.record(t)
	finished := 0
	everyCrash(t, func(t *testing.T, at crash) int {
		v := c.enter(t, mesh.RoleRollout)
		v.cfg.Slots = 1
		changes, crashed := v.live(t, at, func(ctx context.Context, n *part) error {
			_, err := follow(ctx, c, v, n, news[:4])
			return err
		})
		if crashed && !at.power {
			if _, err := v.shown(c); err != nil {
				t.Fatal(err)
			}
		}
		v.live(t, crash{}, func(ctx context.Context, n *part) error {
			if err := n.board.waitFor(ctx, func(b *board) bool { return b.judged }); err != nil {
				return err
			}
			synctest.Wait() // it goes on with the update at once, and changes what current led to, which nobody may read then
			if _, err := v.shown(c); err != nil {
				return err
			}
			if err := news[4].hear(ctx, n, c.publisher); err != nil {
				return err
			}
			return arrive(ctx, c, v, n, 4)
		})
		if strings.Contains(v.log.String(), "finished an update in place") {
			finished++
		}
		if left := v.leftovers(); len(left) > 0 {
			t.Errorf("left %v", left)
		}
		return changes
	})
	if finished == 0 && !testing.Short() && !underRace {
		t.Error("no update in place was ever cut short")
	}
}
