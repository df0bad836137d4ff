package node

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// A block that is damaged is found without any other sign, and rebuilt where it lies, whatever slot it is in.
func TestCheckRepairsBlocks(t *testing.T) {
	steps := series(t, 3)
	trainer, rollout := pairUp(t, steps[0])
	for _, path := range steps[1:] {
		rollout.mustPull(t, trainer.mustPublish(t, path).Number, path)
	}
	for _, n := range []*testNode{rollout, trainer} {
		path := n.Status(t.Context()).Path
		if r, err := n.Check(t.Context()); err != nil || len(r.Slots) != 3 || r.Slots[0].Damaged || r.Slots[1].Damaged || r.Slots[2].Damaged {
			t.Fatalf("checked %+v, %v", r, err)
		}
		damage(t, filepath.Join(path, weightsFile))
		r, err := n.Check(t.Context())
		try(t, err)
		bad := 0
		for _, s := range r.Slots {
			if s.Damaged {
				bad++
				if !s.Repaired || s.Blocks != 1 || s.Path != path {
					t.Errorf("found %+v", s)
				}
			}
		}
		s := n.Status(t.Context())
		if bad != 1 || s.BlocksDamaged != 1 || s.BlocksRepaired != 1 || s.CheckedAt == 0 || s.Path != path || rootOf(t, path) != rootOf(t, steps[2]) {
			t.Errorf("%d slots damaged; status %+v", bad, s)
		}
	}
	if got := rootOf(t, rollout.cfg.Data+"/current"); got != rootOf(t, steps[2]) {
		t.Errorf("current leads to %s", got)
	}
}

// What the blocks cannot be told of is brought up anew.
func TestCheckReplacesWhatItCannotRepair(t *testing.T) {
	steps := series(t, 4)
	trainer, rollout := pairUp(t, steps[0])
	for _, path := range steps[1:3] {
		rollout.mustPull(t, trainer.mustPublish(t, path).Number, path)
	}
	try(t, os.Truncate(filepath.Join(rollout.Status(t.Context()).Path, weightsFile), 5000))
	r, err := rollout.Check(t.Context())
	try(t, err)
	// The node may have seen by itself, just before, that a file is shorter than it was: then the slot is gone already, or
	// whole again.
	if intact := slices.DeleteFunc(r.Slots, func(c api.CheckedSlot) bool { return c.Damaged }); len(intact) < 2 {
		t.Errorf("checked %+v", r)
	}
	rollout.waitFor(t, "the version again", func(s api.Status) bool { return s.Served != nil && s.Served.Number == 2 })
	rollout.mustPull(t, 2, steps[2])
	rollout.mustPull(t, trainer.mustPublish(t, steps[3]).Number, steps[3])
}

// The base is somebody's file: it is not written, and not used any more.
func TestDamagedBaseIsToldAndLeftAlone(t *testing.T) {
	steps := series(t, 3)
	trainer, rollout := pairUp(t, steps[0])
	rollout.mustPull(t, trainer.mustPublish(t, steps[1]).Number, steps[1])
	damage(t, steps[0])
	before, err := os.ReadFile(steps[0])
	try(t, err)
	r, err := rollout.Check(t.Context())
	try(t, err)
	last := r.Slots[len(r.Slots)-1]
	if last.Slot != "base" || !last.Damaged || last.Repaired {
		t.Errorf("checked %+v", r)
	}
	if s := rollout.Status(t.Context()); len(s.Problems) != 1 {
		t.Errorf("problems %q", s.Problems)
	}
	after, err := os.ReadFile(steps[0])
	if err != nil || string(after) != string(before) {
		t.Errorf("the base was changed: %v", err)
	}
	rollout.mustPull(t, trainer.mustPublish(t, steps[2]).Number, steps[2])
}

// A copy at the trainer that rots is found when something is coded from it: it is repaired or told of, and all goes on.
func TestTrainerCodesFromWhatRotted(t *testing.T) {
	rotten := map[string]func(steps []string, n *testNode) string{
		"base":   func(steps []string, _ *testNode) string { return steps[0] },
		"newest": func(_ []string, n *testNode) string { return filepath.Join(n.Status(t.Context()).Path, weightsFile) },
		"one before": func(_ []string, n *testNode) string {
			return filepath.Join(n.role.(*trainer).slots.idle().dir, weightsFile)
		},
	}
	for name, file := range rotten {
		t.Run(name, func(t *testing.T) {
			steps := series(t, 8)
			trainer, rollout := pairUp(t, steps[0])
			for _, path := range steps[1:3] {
				rollout.mustPull(t, trainer.mustPublish(t, path).Number, path)
			}
			trainer.settle(t)
			path, err := filepath.EvalSymlinks(file(steps, trainer))
			try(t, err)
			damage(t, path)
			for _, path := range steps[3:] {
				r, err := trainer.Publish(t.Context(), api.PublishRequest{Path: path})
				if err != nil { // with a hint to try again
					r, err = trainer.Publish(t.Context(), api.PublishRequest{Path: path})
				}
				try(t, err)
				rollout.mustPull(t, r.Number, path)
				trainer.settle(t)
			}
			s := trainer.Status(t.Context())
			if told := strings.Contains(strings.Join(s.Problems, "\n"), "the base checkpoint"); told != (name == "base") {
				t.Errorf("problems %q", s.Problems)
			}
			newcomer := startNode(t, followerOf(t, trainer, trainer.host.ID(), ""))
			if name == "base" { // of which nobody has a copy any more
				newcomer.mustPull(t, 7, steps[7])
			}
			if checked, err := trainer.Check(t.Context()); err != nil || slices.ContainsFunc(checked.Slots, func(c api.CheckedSlot) bool { return c.Damaged }) {
				t.Errorf("checked %+v, %v", checked, err)
			}
		})
	}
}

// Nobody needs to ask: a bit that flips is found in the background and put right.
func TestScrubFindsRot(t *testing.T) {
	c := newCast(t, 3)
	news := c.record(t)
	synctest.Test(t, func(t *testing.T) {
		v := c.enter(t, mesh.RoleRollout)
		v.live(t, crash{}, func(ctx context.Context, n *part) error {
			if _, err := follow(ctx, c, v, n, news[:3]); err != nil {
				return err
			}
			for i, slot := range []string{"a", "b"} {
				try(t, v.disk.FlipBit("/data/slots/"+slot+"/"+weightsFile, int64(60000+i)))
			}
			if _, err := v.shown(c); err == nil {
				t.Error("not damaged")
			}
			time.Sleep(checkEvery + time.Minute)
			return arrive(ctx, c, v, n, 2)
		})
	})
}
