package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// harms are what may happen to a slot behind a node's back.
var harms = map[string]func(t *testing.T, file string){
	"data":   damage,
	"delete": func(t *testing.T, file string) { try(t, os.Remove(file)) },
	"truncate": func(t *testing.T, file string) {
		try(t, os.Truncate(file, 1000))
	},
	"header": func(t *testing.T, file string) {
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		try(t, err)
		defer f.Close()
		_, err = f.WriteAt([]byte{0xff, 0xff}, 0)
		try(t, err)
	},
	"directory": func(t *testing.T, file string) {
		try(t, os.Remove(file))
		try(t, os.MkdirAll(filepath.Join(file, "in the way"), 0o700))
	},
	"fifo": func(t *testing.T, file string) {
		try(t, os.Remove(file))
		try(t, syscall.Mkfifo(file, 0o600))
	},
	"symlink": func(t *testing.T, file string) {
		try(t, os.Remove(file))
		try(t, os.Symlink("/dev/zero", file))
	},
	"slot replaced": func(t *testing.T, file string) {
		try(t, os.RemoveAll(filepath.Dir(file)))
		try(t, os.WriteFile(filepath.Dir(file), []byte("a file"), 0o600))
	},
	"marker of another root": func(t *testing.T, file string) {
		marker := filepath.Dir(file) + ".json"
		b, err := os.ReadFile(marker)
		try(t, err)
		try(t, os.WriteFile(marker, []byte(strings.Replace(string(b), `"root":"`, `"root":"0`, 1)), 0o600))
		damage(t, file)
	},
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Whatever happens to the slot that is served, the next version arrives, whole and without a restart.
func TestServedSlotIsHarmed(t *testing.T) {
	for name, harm := range harms {
		t.Run(name, func(t *testing.T) {
			steps := series(t, 4)
			trainer, rollout := pairUp(t, steps[0])
			rollout.mustPull(t, trainer.mustPublish(t, steps[1]).Number, steps[1])
			harm(t, filepath.Join(rollout.Status(t.Context()).Path, weightsFile))
			rollout.mustPull(t, trainer.mustPublish(t, steps[2]).Number, steps[2])
			rollout.mustPull(t, trainer.mustPublish(t, steps[3]).Number, steps[3])
		})
	}
}

// A trainer whose copy of the last version is harmed publishes on: at the second try at the latest, with a full copy.
func TestTrainersCopyIsHarmed(t *testing.T) {
	for name, harm := range harms {
		t.Run(name, func(t *testing.T) {
			steps := series(t, 3)
			trainer, rollout := pairUp(t, steps[0])
			rollout.mustPull(t, trainer.mustPublish(t, steps[1]).Number, steps[1])
			harm(t, filepath.Join(trainer.Status(t.Context()).Path, weightsFile))
			r, err := trainer.Publish(t.Context(), api.PublishRequest{Path: steps[2]})
			if err != nil {
				r = trainer.mustPublish(t, steps[2])
			}
			rollout.mustPull(t, r.Number, steps[2])
		})
	}
}

// A state that lay idle is looked at before it is served again.
func TestIdleSlotIsHarmed(t *testing.T) {
	for name, harm := range harms {
		t.Run(name, func(t *testing.T) {
			steps := series(t, 3)
			trainer, rollout := pairUp(t, steps[0])
			rollout.mustPull(t, trainer.mustPublish(t, steps[1]).Number, steps[1])
			idle := filepath.Join(rollout.Status(t.Context()).Path, weightsFile)
			rollout.mustPull(t, trainer.mustPublish(t, steps[2]).Number, steps[2])
			harm(t, idle)
			rollout.mustPull(t, trainer.mustPublish(t, steps[1]).Number, steps[1])
		})
	}
}

func TestServedNoteIsDamaged(t *testing.T) {
	steps := series(t, 3)
	trainer, rollout := pairUp(t, steps[0])
	rollout.mustPull(t, trainer.mustPublish(t, steps[1]).Number, steps[1])
	rollout.stop()
	note := filepath.Join(rollout.cfg.Data, servedFile)
	b, err := os.ReadFile(note)
	try(t, err)
	try(t, os.WriteFile(note, []byte(strings.Replace(string(b), `"number":1`, `"number":7`, 1)), 0o600))
	rollout = startNode(t, rollout.cfg)
	rollout.mustPull(t, 1, steps[1])
	if s := rollout.Status(t.Context()); s.Served.Number != 1 {
		t.Errorf("serves %d", s.Served.Number)
	}
	rollout.mustPull(t, trainer.mustPublish(t, steps[2]).Number, steps[2])
}

// After a restart the trainer may go back to an older step; asking for that must not give the state of the same or a
// higher step before.
func TestPullKnowsEpochs(t *testing.T) {
	steps := series(t, 3)
	trainer, rollout := pairUp(t, steps[0])
	forty, five := uint64(40), uint64(5)
	_, err := trainer.Publish(t.Context(), api.PublishRequest{Path: steps[1], Number: &forty})
	try(t, err)
	rollout.mustPull(t, forty, steps[1])
	trainer.stop()
	trainer = startNode(t, trainer.cfg)
	relocate(t, rollout.cfg, trainer)
	r, err := trainer.Publish(t.Context(), api.PublishRequest{Path: steps[2], Number: &five})
	try(t, err)
	p, err := rollout.Pull(t.Context(), api.PullRequest{Number: &five, Epoch: &r.Epoch})
	try(t, err)
	if p.Version.Root != r.Root {
		t.Errorf("pulled %+v, want %+v", p.Version, r.VersionInfo)
	}
}

// An edge that has lost a block is withdrawn, and whoever needed it gets a full copy.
func TestLostBlockStrandsNobody(t *testing.T) {
	steps := series(t, 4)
	trainerCfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	trainer := startNode(t, trainerCfg)
	trainer.mustPublish(t, steps[1])
	trainer.settle(t) // else it is coded anew at once
	lib := libraryOf(trainer)
	_, catalogue, _, _ := trainer.run.Latest()
	manifests, err := lib.stored(catalogue.Edges)
	try(t, err)
	try(t, lib.store.Delete(manifests[0].Chunks[0]))

	rollout := startNode(t, followerOf(t, trainer, id, steps[0]))
	relayCfg := followerOf(t, trainer, id, "")
	relayCfg.Role = mesh.RoleRelay
	relay := startNode(t, relayCfg)
	for _, n := range []*testNode{rollout, relay} {
		n.waitFor(t, "the fetch to begin", func(s api.Status) bool { return s.State == api.StateFetching })
	}
	r := trainer.mustPublish(t, steps[2])
	rollout.mustPull(t, r.Number, steps[2])
	relay.waitFor(t, "the relay", func(s api.Status) bool { return s.Served != nil && s.Served.Number == r.Number })
}

// A full copy on demand leads hosts here that deltas cannot.
func TestPublishFull(t *testing.T) {
	steps := series(t, 3)
	trainerCfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	trainer := startNode(t, trainerCfg)
	stranded := startNode(t, followerOf(t, trainer, id, ""))
	trainer.mustPublish(t, steps[1])
	stranded.waitFor(t, "no path", func(s api.Status) bool { return strings.Contains(s.Error, "--full") })
	r, err := trainer.Publish(t.Context(), api.PublishRequest{Path: steps[1], Full: true})
	try(t, err)
	if r.Changed != 0 {
		t.Errorf("%d changed", r.Changed)
	}
	stranded.mustPull(t, r.Number, steps[1])
	stranded.mustPull(t, trainer.mustPublish(t, steps[2]).Number, steps[2])
}

// A full copy of what is published already leads on those whom nothing else does, and moves nobody else: by the same process
// or the next, with the checkpoint or without.
func TestFullCopyOfWhatIsPublished(t *testing.T) {
	steps := series(t, 3)
	for _, restarts := range []bool{false, true} {
		for what, req := range map[string]api.PublishRequest{
			"nothing but full": {Full: true}, "its checkpoint and number": {Full: true, Path: steps[1], Number: new(uint64(1))},
		} {
			t.Run(fmt.Sprintf("%s, restarts %v", what, restarts), func(t *testing.T) {
				trainerCfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
				trainer := startNode(t, trainerCfg)
				if _, err := trainer.Publish(t.Context(), api.PublishRequest{Full: true}); err == nil {
					t.Error("a full copy of nothing")
				}
				first := trainer.mustPublish(t, steps[1])
				if restarts {
					trainer.stop()
					trainer = startNode(t, trainerCfg)
				}
				stranded, other := startNode(t, followerOf(t, trainer, id, "")), startNode(t, followerOf(t, trainer, id, steps[0]))
				other.mustPull(t, 1, steps[1])
				stranded.waitFor(t, "no path", func(s api.Status) bool { return strings.Contains(s.Error, "--full") })
				for range 2 {
					r, err := trainer.Publish(t.Context(), req)
					if err != nil || r.Full == 0 || r.Number != 1 || r.Root != first.Root {
						t.Fatalf("published %+v, %v", r, err)
					}
				}
				stranded.mustPull(t, 1, steps[1])
				other.mustPull(t, 1, steps[1])
				next := trainer.mustPublish(t, steps[2])
				if next.Number != 2 || next.Changed == next.Elements {
					t.Errorf("published %+v after a full copy of 1", next)
				}
				stranded.mustPull(t, 2, steps[2])
				other.mustPull(t, 2, steps[2])
			})
		}
	}
}

// A rollout starts with what it has when its base is gone, and says so only in its log.
func TestBaseIsGone(t *testing.T) {
	steps := series(t, 3)
	base := filepath.Join(t.TempDir(), "base.safetensors")
	b, err := os.ReadFile(steps[0])
	try(t, err)
	try(t, os.WriteFile(base, b, 0o600))
	trainerCfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	trainer := startNode(t, trainerCfg)
	rolloutCfg := followerOf(t, trainer, id, base)
	rollout := startNode(t, rolloutCfg)
	rollout.mustPull(t, trainer.mustPublish(t, steps[1]).Number, steps[1])
	rollout.stop()
	try(t, os.Remove(base))
	rollout = startNode(t, rolloutCfg)
	rollout.mustPull(t, trainer.mustPublish(t, steps[2]).Number, steps[2])
}
