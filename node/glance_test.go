package node

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// Whatever others remove of a node's files: a directory that pull tells holds the version, and the link current comes back.
// Neither waits for another version, nor for the check once an hour.
func TestFilesGoWhileServed(t *testing.T) {
	losses := map[string]func(t *testing.T, data, place string){ // each in one step: the node is quick to make things anew
		"the slots": func(t *testing.T, _, place string) {
			try(t, os.Rename(filepath.Join(place, "slots"), filepath.Join(place, "gone")))
		},
		"the directory of slots": func(t *testing.T, _, place string) { try(t, os.Rename(place, place+".gone")) },
		"the link":               func(t *testing.T, data, _ string) { try(t, os.Remove(filepath.Join(data, "current"))) },
		"the link, for another": func(t *testing.T, data, _ string) {
			try(t, os.Symlink("/", filepath.Join(data, "other")))
			try(t, os.Rename(filepath.Join(data, "other"), filepath.Join(data, "current")))
		},
		"the link and the slots": func(t *testing.T, data, place string) {
			try(t, os.Remove(filepath.Join(data, "current")))
			try(t, os.Rename(filepath.Join(place, "slots"), filepath.Join(place, "gone")))
		},
		"the weights": func(t *testing.T, _, place string) {
			for _, name := range slotNames {
				try(t, os.RemoveAll(filepath.Join(place, "slots", name, weightsFile)))
			}
		},
		"the end of the weights": func(t *testing.T, data, _ string) {
			try(t, os.Truncate(filepath.Join(data, "current", weightsFile), 100))
		},
	}
	for name, lose := range losses {
		for slots := 1; slots <= 2; slots++ {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				steps := series(t, 2)
				trainerCfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
				trainer := startNode(t, trainerCfg)
				cfg := followerOf(t, trainer, id, steps[0])
				cfg.Slots, cfg.SlotsDir = slots, filepath.Join(t.TempDir(), "slots")
				rollout := startNode(t, cfg)
				number := trainer.mustPublish(t, steps[1]).Number
				rollout.mustPull(t, number, steps[1])
				lose(t, cfg.Data, cfg.SlotsDir)
				res, err := rollout.Pull(t.Context(), api.PullRequest{Number: &number})
				try(t, err)
				if got, want := rootOf(t, res.Path), rootOf(t, steps[1]); got != want {
					t.Fatalf("pull leads to root %s, want %s", got, want)
				}
				awaitCurrent(t, cfg.Data, res.Path)
			})
		}
	}
}

// awaitCurrent waits until the link current leads to dir.
func awaitCurrent(t *testing.T, data, dir string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	want, err := os.Stat(dir)
	try(t, err)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if now, err := os.Stat(filepath.Join(data, "current")); err == nil && os.SameFile(now, want) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: current does not lead to %s again", data, dir)
		case <-tick.C:
		}
	}
}
