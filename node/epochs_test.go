package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// again returns the configuration of a trainer with the same key and an empty data directory, which starts from the
// given node.
func again(t *testing.T, cfg *Config, from *testNode) *Config {
	t.Helper()
	fresh, _ := newConfig(t, mesh.RoleTrainer, cfg.Base)
	fresh.Key = cfg.Key
	if from == nil {
		return fresh
	}
	fresh.Bootstrap = filepath.Join(filepath.Dir(fresh.Data), "bootstrap.txt")
	return relocate(t, fresh, from)
}

// mustHold waits for a version of just that epoch, and demands the weights of the checkpoint at path.
func (n *testNode) mustHold(t *testing.T, r api.PublishResult, path string) {
	t.Helper()
	n.waitFor(t, "version "+versionOf(r.VersionInfo).String(), func(s api.Status) bool {
		return s.Served != nil && versionOf(*s.Served) == versionOf(r.VersionInfo)
	})
	n.mustPull(t, r.Number, path)
}

func ahead(d time.Duration) Machine {
	return Machine{Now: func() time.Time { return time.Now().Add(d) }}
}

func refusedWith(t *testing.T, err error, words ...string) {
	t.Helper()
	var e *api.Error
	if !errors.As(err, &e) || e.Hint == "" {
		t.Errorf("got %v, want an error with a hint", err)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error()+"; "+e.Hint, w) {
			t.Errorf("error %q with hint %q does not say %q", err, e.Hint, w)
		}
	}
}

func TestRestartFromAnOlderStep(t *testing.T) {
	steps := series(t, 8)
	trainer, rollout := pairUp(t, steps[0])
	var last api.PublishResult
	for i, path := range steps[1:6] {
		last = trainer.mustPublish(t, path)
		rollout.mustPull(t, uint64(i+1), path)
	}
	trainer.stop()
	trainer = startNode(t, trainer.cfg)
	relocate(t, rollout.cfg, trainer)
	// Step 1 is trained again, with other weights than before: step 2 of this lineage is what was never published.
	two := uint64(2)
	r, err := trainer.Publish(t.Context(), api.PublishRequest{Path: steps[7], Number: &two})
	if err != nil {
		t.Fatal(err)
	}
	if r.Epoch <= last.Epoch || r.Number != 2 || r.Changed == r.Elements {
		t.Errorf("published %+v, want a delta in a new epoch", r)
	}
	rollout.mustHold(t, r, steps[7])
}

// A crash may fall between the head and the catalogue that belongs to it. The edge that leads to that head must not be
// lost, or nobody who holds an older state gets any further.
func TestAHeadWithoutItsCatalogueKeepsItsEdge(t *testing.T) {
	steps := series(t, 4)
	cfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	trainer := startNode(t, cfg)
	trainer.mustPublish(t, steps[1])
	file := filepath.Join(cfg.Data, "catalogue.signed")
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	trainer.mustPublish(t, steps[2])
	trainer.stop()
	if err := os.WriteFile(file, old, 0o600); err != nil {
		t.Fatal(err)
	}
	trainer = startNode(t, cfg)
	r := trainer.mustPublish(t, steps[3])
	_, c, _, _ := trainer.run.Latest()
	if _, ok := c.Numbered(2); len(c.Edges) != 3 || !ok {
		t.Errorf("%d edges are on offer, want 3; version 2 is named: %v", len(c.Edges), ok)
	}
	rollout := startNode(t, followerOf(t, trainer, id, steps[0]))
	rollout.mustHold(t, r, steps[3])
}

func TestNewEpochWithoutARestart(t *testing.T) {
	steps := series(t, 5)
	trainer, rollout := pairUp(t, steps[0])
	for _, path := range steps[1:4] {
		rollout.mustPull(t, trainer.mustPublish(t, path).Number, path)
	}
	one := uint64(1)
	_, err := trainer.Publish(t.Context(), api.PublishRequest{Path: steps[4], Number: &one})
	refusedWith(t, err, "--new-epoch")
	r, err := trainer.Publish(t.Context(), api.PublishRequest{Path: steps[4], Number: &one, NewEpoch: true})
	if err != nil {
		t.Fatal(err)
	}
	rollout.mustHold(t, r, steps[4])
	next := trainer.mustPublish(t, steps[3])
	if next.Epoch != r.Epoch || next.Number != 2 {
		t.Errorf("went on with %d/%d after %d/%d", next.Epoch, next.Number, r.Epoch, r.Number)
	}
	rollout.mustHold(t, next, steps[3])
}

// A step that was published before is pointed at, when what is on offer leads there.
func TestGoingBackToAKnownStateMovesNothingNew(t *testing.T) {
	steps := series(t, 3)
	trainer, rollout := pairUp(t, steps[0])
	rollout.mustPull(t, trainer.mustPublish(t, steps[1]).Number, steps[1])
	rollout.mustPull(t, trainer.mustPublish(t, steps[0]).Number, steps[0])
	_, before, _, _ := trainer.run.Latest()
	one := uint64(1)
	r, err := trainer.Publish(t.Context(), api.PublishRequest{Path: steps[1], Number: &one, NewEpoch: true})
	if err != nil {
		t.Fatal(err)
	}
	rollout.mustHold(t, r, steps[1])
	if head, after, _, _ := trainer.run.Latest(); head.Edge.Manifest.Defined() || len(after.Edges) != len(before.Edges) {
		t.Errorf("%d edges became %d, and the head's own is %s", len(before.Edges), len(after.Edges), head.Edge.Manifest)
	}
}

func TestAnEmptyDataDirectoryHidesNoHigherEpoch(t *testing.T) {
	for _, c := range []struct {
		what  string
		asks  bool
		clock time.Duration
	}{{"it asks first", true, 0}, {"it asks first, its clock behind", true, -50 * time.Minute}, {"it is dialled, its clock behind", false, -50 * time.Minute}} {
		t.Run(c.what, func(t *testing.T) {
			steps := series(t, 4)
			cfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
			trainer := startNode(t, cfg)
			rolloutCfg := followerOf(t, trainer, id, steps[0])
			rollout := startNode(t, rolloutCfg)
			var last api.PublishResult
			for _, path := range steps[1:3] {
				last = trainer.mustPublish(t, path)
				rollout.mustPull(t, last.Number, path)
			}
			trainer.stop()
			from := rollout
			if !c.asks {
				from = nil
			}
			trainer = startNodeOn(t, ahead(c.clock), again(t, cfg, from))
			relocate(t, rolloutCfg, trainer)
			trainer.waitFor(t, "what was published before", func(s api.Status) bool { return s.Latest != nil && s.Latest.Number == 2 })
			r := trainer.mustPublish(t, steps[3])
			if r.Epoch <= last.Epoch || r.Number != 3 || r.Changed == r.Elements {
				t.Errorf("published %+v after %+v, want a delta in a higher epoch", r, last)
			}
			rollout.mustHold(t, r, steps[3])
			if served := rollout.Status(t.Context()).History; len(served) > 0 && served[len(served)-1].Root != r.Root {
				t.Errorf("history %+v", served)
			}
		})
	}
}

func TestAnotherPublisherTakesOverAndIsTakenOverFrom(t *testing.T) {
	steps := series(t, 5)
	cfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	standbyCfg, standbyID := newConfig(t, mesh.RoleTrainer, steps[0])
	cfg.Publishers, standbyCfg.Publishers = []string{standbyID.String()}, []string{id.String()}
	first := startNode(t, cfg)
	rolloutCfg := followerOf(t, first, id, steps[0])
	rolloutCfg.Publishers = append(rolloutCfg.Publishers, standbyID.String())
	rollout := startNode(t, rolloutCfg)
	rollout.mustPull(t, first.mustPublish(t, steps[1]).Number, steps[1])

	standbyCfg.Bootstrap = filepath.Join(filepath.Dir(standbyCfg.Data), "bootstrap.txt")
	standby := startNode(t, relocate(t, standbyCfg, first))
	r := standby.mustPublish(t, steps[2])
	rollout.mustHold(t, r, steps[2])
	first.waitFor(t, "the first to hear it", func(api.Status) bool { h, _, _, _ := first.run.Latest(); return h.Root == r.Root })
	_, err := first.Publish(t.Context(), api.PublishRequest{Path: steps[3]})
	refusedWith(t, err, standbyID.String(), "--new-epoch")
	if s := first.Status(t.Context()); s.State == api.StateError {
		t.Errorf("a hand-over is an error: %s", s.Error)
	}
	back, err := first.Publish(t.Context(), api.PublishRequest{Path: steps[3], NewEpoch: true})
	if err != nil {
		t.Fatal(err)
	}
	rollout.mustHold(t, back, steps[3])
}

// A trainer whose clock is far ahead, or is said to be, opens epochs that its peers take all the same.
func TestATrainerWhoseClockIsAheadIsFollowed(t *testing.T) {
	steps := series(t, 4)
	cfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	relayCfg, _ := newConfig(t, mesh.RoleRelay, "")
	relayCfg.Publishers = []string{id.String()}
	relay := startNode(t, relayCfg)
	fresh := again(t, cfg, relay)
	for i, off := range []time.Duration{2 * time.Hour, 0, 2 * time.Hour} { // it is put right in between
		trainer := startNodeOn(t, ahead(off), fresh)
		r := trainer.mustPublish(t, steps[i+1])
		if at := time.UnixMilli(int64(r.Epoch)); time.Until(at) > time.Hour {
			t.Errorf("epoch at %s", at)
		}
		relay.waitFor(t, "the version", func(s api.Status) bool {
			return s.Latest != nil && s.Latest.Epoch == r.Epoch && s.Latest.Number == r.Number
		})
		trainer.stop()
	}
}

// One member that is the only one there, and says that it is years ago, keeps nobody from publishing.
func TestALiarAboutTheTimeStopsNoTrainer(t *testing.T) {
	steps := series(t, 3)
	cfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	liarCfg, _ := newConfig(t, mesh.RoleRelay, "")
	liarCfg.Publishers = []string{id.String()}
	liar := startNodeOn(t, ahead(-20*365*24*time.Hour), liarCfg)
	fresh := again(t, cfg, liar)
	trainer := startNode(t, fresh)
	trainer.mustPublish(t, steps[1])
	rollout := startNode(t, followerOf(t, trainer, id, steps[0]))
	rollout.mustPull(t, 1, steps[1])
	trainer.stop()
	r := startNode(t, fresh).mustPublish(t, steps[2]) // the next epoch is above the one before
	rollout.mustHold(t, r, steps[2])
}

func TestOnOfferComparesBytes(t *testing.T) {
	a, b, c := delta.Root{1}, delta.Root{2}, delta.Root{3}
	edges := []mesh.Edge{{Base: a, Target: b, Coded: 10}, {Base: b, Target: c, Coded: 20}, {Base: c, Target: a, Coded: 1 << 63}, {Base: b, Target: a, Coded: 1 << 63}}
	for _, x := range []struct {
		from, to delta.Root
		coded    uint64
		want     bool
	}{{a, b, 10, true}, {a, b, 9, false}, {a, c, 30, true}, {a, c, 29, false}, {c, a, 1<<63 - 1, false}, {a, delta.Root{9}, 1 << 63, false}} {
		if got := onOffer(&delta.Manifest{Target: x.to, Coded: x.coded}, x.from, edges); got != x.want {
			t.Errorf("%s to %s for %d: %v", x.from.Short(), x.to.Short(), x.coded, got)
		}
	}
}
