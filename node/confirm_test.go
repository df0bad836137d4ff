package node

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

func (n *testNode) mustConfirm(t *testing.T, number uint64) {
	t.Helper()
	_, err := n.Confirm(t.Context(), api.VersionRequest{Number: &number})
	try(t, err)
}

// With confirm: manual the slot served before is left alone until the engine has loaded the new one, also over a
// restart; newer versions are fetched meanwhile and wait.
func TestSlotWaitsForConfirm(t *testing.T) {
	steps := series(t, 6)
	trainer, rollout := pairUp(t, steps[0], func(c *Config) { c.Confirm = confirmManual })
	rollout.mustPull(t, trainer.mustPublish(t, steps[1]).Number, steps[1]) // engines start from the base by themselves
	rollout.mustConfirm(t, 1)
	rollout.mustPull(t, trainer.mustPublish(t, steps[2]).Number, steps[2])
	old := filepath.Join(rollout.cfg.Data, "slots", "a")
	if rollout.Status(t.Context()).Path == old {
		old = filepath.Join(rollout.cfg.Data, "slots", "b")
	}

	waiting := func(s api.Status) bool {
		return strings.Contains(s.Waiting, "waiting for confirm of 2") && s.State == api.StateReady
	}
	for i, path := range steps[3:5] {
		trainer.mustPublish(t, path)
		s := rollout.waitFor(t, "the wait", func(s api.Status) bool { return waiting(s) && s.Latest.Number == uint64(3+i) })
		if s.Served.Number != 2 || *s.Unconfirmed != s.Served.ID() {
			t.Errorf("status %+v", s)
		}
	}
	if r, err := rollout.Pull(t.Context(), api.PullRequest{}); err != nil || r.Version.Number != 2 {
		t.Errorf("another process on the host pulls %+v, %v; want what is to be loaded", r, err)
	}
	lib, newest := libraryOf(rollout), rootOf(t, steps[4])
	_, catalogue, _, _ := rollout.run.Latest()
	rollout.waitFor(t, "the newest version to be fetched", func(api.Status) bool {
		return slices.ContainsFunc(catalogue.Edges, func(e mesh.Edge) bool { return e.Target == newest && lib.has(e) })
	})
	rollout.stop()
	rollout = startNode(t, rollout.cfg)
	rollout.waitFor(t, "the wait after a restart", waiting)
	if got := rootOf(t, old); got != rootOf(t, steps[1]) {
		t.Errorf("the slot served before holds %s", got.Short())
	}

	for _, wrong := range []uint64{3, 4} {
		_, err := rollout.Confirm(t.Context(), api.VersionRequest{Number: &wrong})
		mustRefuse(t, err, http.StatusConflict, "2 of epoch", "pull")
	}
	rollout.mustConfirm(t, 2)
	rollout.mustPull(t, 4, steps[4])
	rollout.mustConfirm(t, 2) // by another process of the engine, or again after an answer that was lost
	if s := rollout.Status(t.Context()); s.Unconfirmed == nil || s.Unconfirmed.Number != 4 {
		t.Errorf("status %+v", s)
	}
}

func TestConfirmGoesForward(t *testing.T) {
	steps := series(t, 5)
	trainer, rollout := pairUp(t, steps[0], func(c *Config) { c.Confirm = confirmManual })
	for i, path := range steps[1:] {
		n := trainer.mustPublish(t, path).Number
		if i > 0 {
			rollout.mustHear(t, n)
			rollout.mustConfirm(t, n-1)
		}
		rollout.mustPull(t, n, path)
	}
	if s := rollout.Status(t.Context()); s.Unconfirmed == nil || s.Waiting != "" {
		t.Errorf("status %+v", s)
	}
	// The same weights under another number need no word of an engine that has them.
	rollout.mustConfirm(t, 4)
	n := trainer.mustPublish(t, steps[4]).Number
	rollout.mustPull(t, n, steps[4])
	if s := rollout.Status(t.Context()); s.Unconfirmed != nil {
		t.Errorf("status %+v", s)
	}
}

// A confirm that was lost with its note is asked for again; a slot is never written on a guess.
func TestConfirmedNoteIsDamaged(t *testing.T) {
	steps := series(t, 4)
	trainer, rollout := pairUp(t, steps[0], func(c *Config) { c.Confirm = confirmManual })
	rollout.mustPull(t, trainer.mustPublish(t, steps[1]).Number, steps[1])
	rollout.mustConfirm(t, 1)
	rollout.stop()
	try(t, os.WriteFile(filepath.Join(rollout.cfg.Data, confirmedFile), []byte("nonsense"), 0o600))
	trainer.mustPublish(t, steps[2])
	rollout = startNode(t, rollout.cfg)
	rollout.waitFor(t, "the wait", func(s api.Status) bool { return strings.Contains(s.Waiting, "waiting for confirm of 1") })
	rollout.mustConfirm(t, 1)
	rollout.mustPull(t, 2, steps[2])
}

func TestConfirmIsNotNeeded(t *testing.T) {
	steps := series(t, 3)
	trainer, rollout := pairUp(t, steps[0])
	rollout.mustPull(t, trainer.mustPublish(t, steps[1]).Number, steps[1])
	rollout.mustConfirm(t, 1)
	rollout.mustPull(t, trainer.mustPublish(t, steps[2]).Number, steps[2])
	rollout.mustConfirm(t, 1) // the node has gone on, which is no mistake of whoever confirms
}

// A wait that is long is a problem that says what to do.
func TestLongWaitForConfirmIsAProblem(t *testing.T) {
	b := newBoard()
	b.manual = true
	b.serve(api.VersionInfo{Number: 17, Root: delta.Root{1}}, "")
	b.learn(mesh.Head{Version: mesh.Version{Number: 18}, Root: delta.Root{2}}, mesh.Catalogue{}, []delta.Root{{1}})
	b.judge()
	for _, c := range []struct {
		ago      time.Duration
		problems int
	}{{longUnconfirmed / 2, 0}, {2 * longUnconfirmed, 1}} {
		b.heard[0].at = time.Now().Add(-c.ago)
		var s api.Status
		b.fill(&s)
		if len(s.Problems) != c.problems || c.problems > 0 && !strings.Contains(s.Problems[0], "sparsecast confirm 17") {
			t.Errorf("after %s: problems %q", c.ago, s.Problems)
		}
		if s.Unconfirmed.Number != 17 || *s.Behind != 1 || s.BehindSeconds < c.ago.Seconds() {
			t.Errorf("after %s: %+v", c.ago, s)
		}
	}
}

// A node that waits to go back to an older version has nothing newer that waits.
func TestNoLongWaitWithoutNews(t *testing.T) {
	b := newBoard()
	b.manual = true
	b.serve(api.VersionInfo{Number: 8, Root: delta.Root{8}}, "")
	six := mesh.VersionRoot{Version: mesh.Version{Number: 6}, Root: delta.Root{6}}
	b.learn(mesh.Head{Version: mesh.Version{Number: 8}, Root: delta.Root{8}}, mesh.Catalogue{Versions: []mesh.VersionRoot{six}}, []delta.Root{six.Root})
	b.pin = &api.Pin{Number: 6, Root: six.Root}
	b.judge()
	var s api.Status
	if b.fill(&s); len(s.Problems) != 0 {
		t.Errorf("problems %q", s.Problems)
	}
}

// With one slot an update waits for the confirm of the one before, and nothing is withdrawn until then. That there is
// no second copy for the engine is told at the start.
func TestOneSlotWaitsForConfirm(t *testing.T) {
	steps := series(t, 3)
	trainerCfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	trainer := startNode(t, trainerCfg)
	cfg := followerOf(t, trainer, id, steps[0])
	cfg.Slots, cfg.Confirm = 1, confirmManual
	var said strings.Builder
	n, err := New(cfg, zerolog.New(&said))
	try(t, err)
	try(t, n.Close())
	if !strings.Contains(said.String(), "slots: 1 with confirm: manual") {
		t.Errorf("nothing is told at the start: %s", &said)
	}
	rollout := startNode(t, cfg)
	rollout.mustPull(t, trainer.mustPublish(t, steps[1]).Number, steps[1])
	trainer.mustPublish(t, steps[2])
	rollout.waitFor(t, "the wait", func(s api.Status) bool { return strings.Contains(s.Waiting, "waiting for confirm of 1") })
	rollout.mustServe(t, 1, steps[1])
	rollout.mustConfirm(t, 1)
	rollout.mustPull(t, 2, steps[2])
}
