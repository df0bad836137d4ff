package node

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// Nothing leads an engine back to an older state than one that was served, and never to one that is none of the run's.

// mustLeadNowhere fails where the link current of a node leads anywhere.
func (n *testNode) mustLeadNowhere(t *testing.T) {
	t.Helper()
	if to, err := os.Readlink(n.part.dir.Path("current")); err == nil {
		t.Errorf("current leads to %s", to)
	}
}

// A trainer that has lost its data announces its base only to those who know nothing better.
func TestATrainerThatForgotMovesNobody(t *testing.T) {
	steps := series(t, 4)
	cfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	trainer := startNode(t, cfg)
	rollout := startNode(t, followerOf(t, trainer, id, steps[0]))
	for _, path := range steps[1:3] {
		rollout.mustPull(t, trainer.mustPublish(t, path).Number, path)
	}
	rollout.stop()
	trainer.stop()
	trainer = startNode(t, again(t, cfg, nil))
	newcomer := startNode(t, followerOf(t, trainer, id, steps[0]))
	newcomer.mustPull(t, 0, steps[0])
	rollout = startNode(t, relocate(t, rollout.cfg, trainer))
	trainer.waitFor(t, "what was published before", func(s api.Status) bool { return s.Latest != nil && s.Latest.Number == 2 })
	newcomer.mustPull(t, 2, steps[2])
	rollout.mustPull(t, 2, steps[2])
	for _, v := range rollout.Status(t.Context()).History {
		if v.Number < 2 {
			t.Errorf("served %d after its restart", v.Number)
		}
	}
	r := trainer.mustPublish(t, steps[3])
	rollout.mustPull(t, r.Number, steps[3])
	newcomer.mustPull(t, r.Number, steps[3])
}

// A start that does not find what was served leads to nothing, and not to the base, which is older.
func TestLostCopiesLeadNotToTheBase(t *testing.T) {
	steps := series(t, 2)
	trainer, rollout := pairUp(t, steps[0])
	rollout.mustPull(t, trainer.mustPublish(t, steps[1]).Number, steps[1])
	trainer.stop()
	rollout.stop()
	for _, name := range []string{"slots", "blocks"} {
		try(t, os.RemoveAll(filepath.Join(rollout.cfg.Data, name)))
	}
	rollout = startNode(t, rollout.cfg)
	rollout.waitFor(t, "the start to end", func(s api.Status) bool { return s.State != api.StateStarting })
	rollout.mustLeadNowhere(t)
	time.Sleep(10 * time.Millisecond) // whatever it looks at next
	rollout.mustLeadNowhere(t)
	rollout.stop()
	rollout = startNode(t, relocate(t, rollout.cfg, startNode(t, trainer.cfg)))
	rollout.mustPull(t, 1, steps[1])
}

// Another checkpoint in place of the base that is served is noticed without a version to come.
func TestBaseIsReplacedWhileItIsServed(t *testing.T) {
	steps := series(t, 3)
	base := filepath.Join(t.TempDir(), "base.safetensors")
	lay := func(from string) {
		b, err := os.ReadFile(from)
		try(t, err)
		try(t, os.WriteFile(base+".new", b, 0o600))
		try(t, os.Rename(base+".new", base))
	}
	lay(steps[0])
	cfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	trainer := startNode(t, cfg)
	rollout := startNode(t, followerOf(t, trainer, id, base))
	rollout.mustPull(t, 0, steps[0])
	lay(steps[2])
	rollout.waitFor(t, "the loss of the base", func(s api.Status) bool { return s.Served == nil && len(s.Problems) > 0 })
	rollout.mustLeadNowhere(t)
	r, err := trainer.Publish(t.Context(), api.PublishRequest{Path: steps[1], Full: true})
	try(t, err)
	rollout.mustPull(t, r.Number, steps[1])
}

// What a rollout led to is not left behind when its node gets another role.
func TestAnotherRoleLeadsNowhere(t *testing.T) {
	for _, role := range []mesh.Role{mesh.RoleTrainer, mesh.RoleRelay} {
		steps := series(t, 2)
		trainer, rollout := pairUp(t, steps[0])
		rollout.mustPull(t, trainer.mustPublish(t, steps[1]).Number, steps[1])
		rollout.stop()
		rollout.cfg.Role = role
		if role == mesh.RoleRelay {
			rollout.cfg.Base = ""
		}
		other := startNode(t, rollout.cfg)
		other.waitFor(t, "the start to end", func(s api.Status) bool { return s.State != api.StateStarting })
		other.mustLeadNowhere(t)
		other.stop()
		trainer.stop()
	}
}
