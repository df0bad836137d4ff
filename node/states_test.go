package node

import (
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// mustPublishAll publishes several states as one version.
func (n *testNode) mustPublishAll(t *testing.T, p paths) api.PublishResult {
	t.Helper()
	r, err := n.Publish(t.Context(), api.PublishRequest{Paths: p})
	try(t, err)
	return r
}

// mustPullAll waits for a version and demands the weights of every state, and no others.
func (n *testNode) mustPullAll(t *testing.T, number uint64, want paths) {
	t.Helper()
	n.waitFor(t, "the version", func(s api.Status) bool { return s.Served != nil && s.Served.Number == number })
	for _, place := range []string{n.Status(t.Context()).Path, n.part.dir.Path("current")} {
		n.mustLieAt(t, place, want)
	}
}

func (n *testNode) mustLieAt(t *testing.T, place string, want paths) {
	t.Helper()
	for state, path := range want {
		if got, want := rootOf(t, filepath.Join(place, state)), rootOf(t, path); got != want {
			t.Fatalf("state %q at %s has root %s, want %s", state, place, got, want)
		}
	}
	var dirs []string
	entries, err := os.ReadDir(place)
	try(t, err)
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(place, e.Name())); err == nil && info.IsDir() {
			dirs = append(dirs, e.Name())
		}
	}
	names := slices.DeleteFunc(slices.Collect(maps.Keys(want)), func(n string) bool { return n == "" })
	if slices.Sort(names); !slices.Equal(dirs, names) {
		t.Errorf("at %s lie %v, want %v", place, dirs, names)
	}
}

// stepOf returns the states of one step.
func stepOf(policy, draft []string, i int) paths {
	return paths{"policy": policy[i], "draft": draft[i]}
}

// Naming the state makes no error of none.
func TestInState(t *testing.T) {
	for name, want := range map[string]string{"": "broken", "policy": "state policy: broken"} {
		broken := errors.New("broken")
		if err := inState(name, broken); !errors.Is(err, broken) || err.Error() != want {
			t.Errorf("state %q: got %v, want %s", name, err, want)
		}
		if err := inState(name, nil); err != nil {
			t.Errorf("state %q: got %v of no error", name, err)
		}
	}
}

// Two states move as one version, from a base of both, over restarts, whatever groups their tensors are coded in.
func TestTwoStatesMoveAsOne(t *testing.T) {
	for _, group := range []string{groupNone, groupLayer} {
		t.Run(group, func(t *testing.T) {
			policy, draft := series(t, 5), series(t, 5)
			slices.Reverse(draft)
			cfg, id := newConfig(t, mesh.RoleTrainer, "")
			cfg.Bases, cfg.GroupBy = stepOf(policy, draft, 0), group
			trainer := startNode(t, cfg)
			rolloutCfg := followerOf(t, trainer, id, "")
			rolloutCfg.Bases, rolloutCfg.GroupBy = cfg.Bases, group
			rollout := startNode(t, rolloutCfg)
			rollout.mustPullAll(t, 0, stepOf(policy, draft, 0))
			r := trainer.mustPublishAll(t, stepOf(policy, draft, 1))
			rollout.mustPullAll(t, r.Number, stepOf(policy, draft, 1))
			if r.Changed == 0 || r.Changed > r.Elements/10 {
				t.Errorf("%d of %d elements changed: no delta", r.Changed, r.Elements)
			}
			trainer.mustPublishAll(t, stepOf(policy, draft, 2))
			rollout.mustPullAll(t, 2, stepOf(policy, draft, 2))
			rollout.stop()
			trainer.stop()
			trainer = startNode(t, cfg)
			r = trainer.mustPublishAll(t, stepOf(policy, draft, 3))
			if r.Changed == 0 || r.Changed > r.Elements/10 {
				t.Errorf("after a restart %d of %d elements changed: no delta", r.Changed, r.Elements)
			}
			rollout = startNode(t, relocate(t, rolloutCfg, trainer))
			rollout.mustPullAll(t, r.Number, stepOf(policy, draft, 3))
			if n := rollout.Status(t.Context()).Counters["chunk_bytes_received"]; n == 0 || n > r.Coded*3 {
				t.Errorf("received %d bytes for deltas of %d", n, r.Coded)
			}
		})
	}
}

// A state that appears or goes makes a full copy, and its directory comes and goes with it. None goes for want of a name.
func TestStatesComeAndGo(t *testing.T) {
	policy, draft := series(t, 5), series(t, 5)
	cfg, id := newConfig(t, mesh.RoleTrainer, policy[0])
	trainer := startNode(t, cfg)
	rollout := startNode(t, followerOf(t, trainer, id, policy[0]))
	before := paths{}
	for _, want := range []paths{
		{"": policy[1]},
		{"policy": policy[1]},
		{"policy": policy[2]},
		{"policy": policy[2], "draft": draft[2]},
		{"policy": policy[2], "draft": draft[3]},
		{"policy": policy[3], "adapter": draft[3]},
		{"": policy[3]},
		{"": policy[4]},
	} {
		goes := slices.ContainsFunc(before.names(), func(name string) bool { return want[name] == "" })
		r, err := trainer.Publish(t.Context(), api.PublishRequest{Paths: want})
		if goes {
			mustRefuse(t, err, http.StatusConflict, "lacks", stateWord(before, want), "NAME=PATH")
			r, err = trainer.Publish(t.Context(), api.PublishRequest{Paths: want, Full: true})
		}
		if try(t, err); want[""] != "" {
			rollout.mustPull(t, r.Number, want[""])
		} else {
			rollout.mustPullAll(t, r.Number, want)
		}
		before = want
	}
}

// stateWord is how an error names the first state that goes.
func stateWord(before, now paths) string {
	for _, name := range before.names() {
		if now[name] == "" && name != "" {
			return name
		}
	}
	return "the one without a name"
}

// The name that loaders of adapters look for is told by what lies beside the weights.
func TestAdaptersHaveTheirName(t *testing.T) {
	steps := series(t, 3)
	base := filepath.Join(t.TempDir(), "adapter")
	try(t, os.Mkdir(base, 0o700))
	try(t, os.WriteFile(filepath.Join(base, adapterConfig), []byte("{}"), 0o600))
	try(t, os.Link(steps[0], filepath.Join(base, adapterFile)))
	cfg, id := newConfig(t, mesh.RoleTrainer, "")
	cfg.Bases = paths{"policy": steps[0], "adapter": base}
	trainer := startNode(t, cfg)
	rolloutCfg := followerOf(t, trainer, id, "")
	rolloutCfg.Bases = cfg.Bases
	rollout := startNode(t, rolloutCfg)
	for i := range 2 {
		want := paths{"policy": steps[0], "adapter": steps[i+1]}
		rollout.mustPullAll(t, trainer.mustPublishAll(t, want).Number, want)
		for _, file := range []string{"adapter/" + adapterFile, "adapter/" + adapterConfig, "policy/" + weightsFile} {
			if _, err := os.Stat(filepath.Join(rollout.part.dir.Path("current"), file)); err != nil {
				t.Error(err)
			}
		}
		if _, err := os.Stat(filepath.Join(rollout.part.dir.Path("current"), "adapter", weightsFile)); err == nil {
			t.Error("the adapter lies there under the name of a model, too")
		}
	}
	rollout.stop()
	rollout = startNode(t, relocate(t, rolloutCfg, trainer))
	rollout.mustPullAll(t, 2, paths{"policy": steps[0], "adapter": steps[2]})
}

func TestWrongStatesAreRefused(t *testing.T) {
	steps := series(t, 1)
	cfg, _ := newConfig(t, mesh.RoleTrainer, "")
	trainer := startNode(t, cfg)
	for _, c := range []struct {
		paths paths
		code  int
		words []string
	}{
		{paths{"policy": steps[0], "draft": "/absent"}, http.StatusUnprocessableEntity, []string{"state draft", "/absent", "the node's host"}},
		{paths{"policy": steps[0], "../x": steps[0]}, http.StatusBadRequest, []string{`"../x" is no name`}},
		{paths{"policy": steps[0], "": steps[0]}, http.StatusBadRequest, []string{"without a name"}},
		{paths{"policy": t.TempDir()}, http.StatusUnprocessableEntity, []string{"state policy", "no *.safetensors"}},
	} {
		_, err := trainer.Publish(t.Context(), api.PublishRequest{Paths: c.paths})
		mustRefuse(t, err, c.code, c.words...)
	}
	if s := trainer.Status(t.Context()); s.Latest != nil {
		t.Errorf("something was published: %+v", s.Latest)
	}
}

// Links to a base never lead writes into it.
func TestBaseOfStatesIsOnlyLinked(t *testing.T) {
	steps := series(t, 2)
	base := t.TempDir()
	try(t, os.Link(steps[0], filepath.Join(base, weightsFile)))
	cfg, id := newConfig(t, mesh.RoleRollout, "")
	cfg.Publishers = []string{id.String()}
	for _, bases := range []paths{{"policy": base}, {"policy": steps[1]}, {"policy": base, "draft": steps[1]}} {
		cfg.Bases = bases
		rollout := startNode(t, cfg)
		rollout.waitFor(t, "the base", func(s api.Status) bool { return s.State == api.StateReady || s.State == api.StateWaiting })
		rollout.waitFor(t, "the link", func(api.Status) bool { _, err := os.Stat(rollout.part.dir.Path("current")); return err == nil })
		rollout.mustLieAt(t, rollout.part.dir.Path("current"), bases)
		rollout.stop()
		if entries, err := os.ReadDir(base); err != nil || len(entries) != 1 || entries[0].Type() != 0 {
			t.Fatalf("the base holds %v, %v", entries, err)
		}
	}
	if !strings.Contains(rootOf(t, filepath.Join(base, weightsFile)).String(), rootOf(t, steps[0]).String()) {
		t.Error("the base has changed")
	}
}
