package node

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// checkpointDir makes a directory of weights and files beside them.
func checkpointDir(t *testing.T, weights string, beside map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	try(t, os.Link(weights, filepath.Join(dir, weightsFile)))
	for name, content := range beside {
		try(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

// mustFind demands just these files, beside the weights, in a directory.
func mustFind(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	try(t, err)
	var names []string
	for _, e := range entries {
		if !e.IsDir() && isSidecar(e.Name()) {
			names = append(names, e.Name())
		}
	}
	for name, content := range want {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != content {
			t.Errorf("%s/%s: got %q, %v, want %q", dir, name, got, err, content)
		}
	}
	if len(names) != len(want) {
		t.Errorf("beside the weights in %s lie %v, want %v", dir, names, want)
	}
}

// A newcomer that has nothing gets what an engine loads beside the weights with the anchor, and keeps it over deltas,
// restarts, and another anchor.
func TestNewcomerGetsSidecars(t *testing.T) {
	steps := series(t, 6)
	beside := map[string]string{"config.json": "{}", "tokenizer.json": strings.Repeat("[]", 40000), "empty.txt": ""}
	cfg, id := newConfig(t, mesh.RoleTrainer, "")
	trainer := startNode(t, cfg)
	trash := map[string]string{"optimizer.pt": "no", "x.safetensors.partial": "no", "back\\slash": "no", ".hidden": "no"}
	full := checkpointDir(t, steps[1], beside)
	for name, content := range trash {
		try(t, os.WriteFile(filepath.Join(full, name), []byte(content), 0o600))
	}
	trainer.mustPublish(t, full)
	rolloutCfg := followerOf(t, trainer, id, "")
	rollout := startNode(t, rolloutCfg)
	current := rollout.part.dir.Path("current")
	rollout.mustPull(t, 1, steps[1])
	mustFind(t, current, beside)
	for i := 2; i < 4; i++ { // bare weights, into either slot
		rollout.mustPull(t, trainer.mustPublish(t, steps[i]).Number, steps[i])
		mustFind(t, current, beside)
	}
	rollout.stop()
	rollout = startNode(t, rolloutCfg)
	rollout.mustPull(t, 3, steps[3])
	mustFind(t, current, beside)

	// other files come with the next full copy, and with that only
	next := map[string]string{"config.json": `{"new":1}`}
	rollout.mustPull(t, trainer.mustPublish(t, checkpointDir(t, steps[4], next)).Number, steps[4])
	mustFind(t, current, beside)
	trainer.settle(t)
	_, err := trainer.Publish(t.Context(), api.PublishRequest{Path: steps[5], Full: true})
	try(t, err)
	otherCfg := followerOf(t, trainer, id, "")
	other := startNode(t, otherCfg)
	other.mustPull(t, 5, steps[5])
	mustFind(t, other.part.dir.Path("current"), next)
}

// Where bare weights are published, files that somebody put into the slots stay, and are handed on.
func TestFilesInSlotsStay(t *testing.T) {
	steps := series(t, 4)
	cfg, id := newConfig(t, mesh.RoleTrainer, "")
	trainer := startNode(t, cfg)
	trainer.mustPublish(t, steps[0])
	rolloutCfg := followerOf(t, trainer, id, "")
	mine := map[string]string{"config.json": "mine"}
	for _, slot := range slotNames {
		dir := filepath.Join(rolloutCfg.Data, "slots", slot)
		try(t, os.MkdirAll(dir, 0o700))
		try(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte("mine"), 0o600))
	}
	rollout := startNode(t, rolloutCfg)
	for i, path := range steps {
		if i > 0 {
			trainer.mustPublish(t, path)
		}
		rollout.mustPull(t, uint64(i+1), path)
		mustFind(t, rollout.part.dir.Path("current"), mine)
	}
}

// What a base has beside its weights stays what hosts with the base serve; for others it travels where nothing newer was
// published.
func TestSidecarsOfTheBaseTravel(t *testing.T) {
	steps := series(t, 3)
	base := checkpointDir(t, steps[0], map[string]string{"config.json": "{}"})
	mine := checkpointDir(t, steps[0], map[string]string{"config.json": "mine"})
	cfg, id := newConfig(t, mesh.RoleTrainer, base)
	cfg.Anchors = anchorsAlways
	trainer := startNode(t, cfg)
	trainer.mustPublish(t, steps[1])
	bare := startNode(t, followerOf(t, trainer, id, ""))
	based := startNode(t, followerOf(t, trainer, id, mine))
	bare.mustPull(t, 1, steps[1])
	based.mustPull(t, 1, steps[1])
	mustFind(t, bare.part.dir.Path("current"), map[string]string{"config.json": "{}"})
	mustFind(t, based.part.dir.Path("current"), map[string]string{"config.json": "mine"})
}

func TestSidecarsOfStates(t *testing.T) {
	steps := series(t, 3)
	policy, adapter := map[string]string{"config.json": "{}"}, map[string]string{adapterConfig: "{}", "config.json": "other"}
	cfg, id := newConfig(t, mesh.RoleTrainer, "")
	trainer := startNode(t, cfg)
	want := paths{"policy": checkpointDir(t, steps[0], policy), "adapter": checkpointDir(t, steps[1], adapter)}
	trainer.mustPublishAll(t, want)
	rollout := startNode(t, followerOf(t, trainer, id, ""))
	rollout.mustPullAll(t, 1, want)
	again := paths{"policy": steps[0], "adapter": steps[2]}
	trainer.mustPublishAll(t, again)
	rollout.mustPullAll(t, 2, again)
	for _, slot := range slotNames {
		mustFind(t, rollout.part.dir.Path("slots/"+slot+"/policy"), policy)
		mustFind(t, rollout.part.dir.Path("slots/"+slot+"/adapter"), adapter)
		if _, err := os.Stat(rollout.part.dir.Path("slots/" + slot + "/adapter/" + adapterFile)); err != nil {
			t.Error(err)
		}
	}
}

// A publisher that sends odd names replaces no weights, and reaches nothing but the directories of the states.
func TestOddSidecarsAreNotLaid(t *testing.T) {
	steps := series(t, 1)
	cfg, _ := newConfig(t, mesh.RoleRollout, "")
	cfg.Publishers = []string{publisher}
	n := startNode(t, cfg)
	n.waitFor(t, "the slots", func(s api.Status) bool { return s.State == api.StateWaiting })
	s, err := openSlots(t.Context(), n.home, n.part.log)
	try(t, err)
	c, err := openStates(n.part.dir.FS(), paths{"": steps[0]}, nil)
	try(t, err)
	defer c.Close()
	to := s.idle()
	try(t, s.prepare(to, c.Schema(), delta.Root{}))
	var laid []string
	_, err = s.dressFrom(to, c.Schema(), func(lay lay) error {
		for _, f := range []string{"config.json", weightsFile, adapterFile, "model.safetensors.index.json", "pytorch_model.bin"} {
			try(t, lay("", f, []byte("x")))
		}
		return lay("other", "config.json", []byte("x"))
	})
	try(t, err)
	entries, err := os.ReadDir(to.dir)
	try(t, err)
	for _, e := range entries {
		laid = append(laid, e.Name())
	}
	if !slices.Equal(laid, []string{"config.json"}) {
		t.Errorf("got %v", laid)
	}
}
