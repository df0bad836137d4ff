package node

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// of returns a node's part in a run, as a node of its own.
func (n *testNode) of(t *testing.T, run string) *testNode {
	t.Helper()
	r, err := n.In(run)
	try(t, err)
	return &testNode{Node: n.Node, part: r.(*part), stop: n.stop}
}

// withRuns makes cfg one of several runs, which are alike but for their names and bases.
func withRuns(cfg *Config, publishers []string, bases map[string]string) *Config {
	for _, name := range []string{"chat", "code", "math"} {
		base, ok := bases[name]
		if !ok {
			continue
		}
		r := RunConfig{Name: name, RunOptions: DefaultRunOptions()}
		r.Base, r.Publishers = base, publishers
		cfg.Runs = append(cfg.Runs, r)
	}
	return cfg
}

// Two runs of one trainer go over one relay, which knows only one of them, to a rollout that serves both, each at its own
// version; after a restart all goes on.
func TestTwoRunsOverOneRelay(t *testing.T) {
	chat, code := series(t, 4), series(t, 4)
	slices.Reverse(code)
	bases := map[string]string{"chat": chat[0], "code": code[0]}
	trainerCfg, id := newConfig(t, mesh.RoleTrainer, "")
	trainer := startNode(t, withRuns(trainerCfg, nil, bases))
	relayCfg, _ := newConfig(t, mesh.RoleRelay, "")
	relayCfg.Bootstrap = filepath.Join(filepath.Dir(relayCfg.Key), "bootstrap.txt")
	relay := startNode(t, withRuns(relocate(t, relayCfg, trainer), []string{id.String()}, bases))
	rolloutCfg, _ := newConfig(t, mesh.RoleRollout, "")
	rolloutCfg.Bootstrap = filepath.Join(filepath.Dir(rolloutCfg.Key), "bootstrap.txt")
	rollout := startNode(t, withRuns(relocate(t, rolloutCfg, relay), []string{id.String()}, bases))

	rollout.of(t, "chat").mustPull(t, trainer.of(t, "chat").mustPublish(t, chat[1]).Number, chat[1])
	rollout.of(t, "chat").mustPull(t, trainer.of(t, "chat").mustPublish(t, chat[2]).Number, chat[2])
	rollout.of(t, "code").mustPull(t, trainer.of(t, "code").mustPublish(t, code[1]).Number, code[1])
	rollout.of(t, "chat").mustPin(t, 1)
	rollout.of(t, "chat").mustServe(t, 1, chat[1])
	rollout.of(t, "code").mustServe(t, 1, code[1])

	rollout.stop()
	trainer.stop()
	trainer = startNode(t, trainerCfg)
	relocate(t, relayCfg, trainer)
	rollout = startNode(t, relocate(t, rolloutCfg, relay))
	if r := trainer.of(t, "code").mustPublish(t, code[2]); r.Changed == 0 || r.Number != 2 {
		t.Errorf("the trainer went on with %+v", r)
	}
	rollout.of(t, "code").mustPull(t, 2, code[2])
	rollout.of(t, "chat").mustServe(t, 1, chat[1])
	if got, want := rollout.runNames(), []string{"chat", "code"}; !slices.Equal(got, want) {
		t.Errorf("got runs %v", got)
	}
	for _, i := range rollout.Runs(t.Context()).Runs {
		if !strings.Contains(i.Path, filepath.Join(rolloutCfg.Data, "runs", i.Run)) || i.Served == nil || i.State != api.StateReady {
			t.Errorf("got %+v", i)
		}
	}
}

// The blocks of a run outlive what another run of the node clears away, at any time after a restart.
func TestRunsLeaveEachOtherTheirBlocks(t *testing.T) {
	steps := series(t, 4)
	cfg, _ := newConfig(t, mesh.RoleTrainer, "")
	withRuns(cfg, nil, map[string]string{"chat": steps[0], "code": ""})
	trainer := startNode(t, cfg)
	for _, path := range steps[1:] {
		trainer.of(t, "code").mustPublish(t, path)
	}
	trainer.of(t, "code").settle(t)
	trainer.stop()
	n, err := New(cfg, zerolog.Nop()) // nothing runs yet
	try(t, err)
	_, err = n.shelf.sweep()
	try(t, err)
	try(t, n.Close())

	trainer = startNode(t, cfg)
	trainer.of(t, "chat").mustPublish(t, steps[1])
	code := trainer.of(t, "code")
	_, catalogue, _, _ := code.run.Latest()
	if kept, whole := libraryOf(code).whole(catalogue.Edges); !whole || len(kept) < 3 {
		t.Errorf("of %d edges on offer %d are whole", len(catalogue.Edges), len(kept))
	}
}

// A run whose ledger is damaged says so, and the others go on. Nothing is cleared away meanwhile: what the run needs is
// not known.
func TestOneRunFails(t *testing.T) {
	steps := series(t, 4)
	cfg, _ := newConfig(t, mesh.RoleTrainer, "")
	withRuns(cfg, nil, map[string]string{"chat": steps[0], "code": ""})
	trainer := startNode(t, cfg)
	trainer.of(t, "code").mustPublish(t, steps[0])
	trainer.of(t, "code").mustPublish(t, steps[1])
	trainer.stop()
	ledger := filepath.Join(cfg.Data, "runs", "code", "head.signed")
	good, err := os.ReadFile(ledger)
	try(t, err)
	try(t, os.WriteFile(ledger, good[:len(good)-1], 0o600))

	trainer = startNode(t, cfg)
	for i, path := range steps[1:] {
		if r := trainer.of(t, "chat").mustPublish(t, path); r.Number != uint64(i+1) {
			t.Errorf("published %+v", r)
		}
	}
	trainer.of(t, "chat").settle(t)
	code := trainer.of(t, "code")
	if s := code.Status(t.Context()); s.State != api.StateError || !strings.Contains(s.Error, "head.signed") || s.Run != "code" {
		t.Errorf("got %+v", s)
	}
	if s := trainer.of(t, "chat").Status(t.Context()); s.State != api.StateReady {
		t.Errorf("the other run: %+v", s)
	}
	_, err = code.Publish(t.Context(), api.PublishRequest{Path: steps[2]})
	mustRefuse(t, err, http.StatusInternalServerError, "code", "head.signed")
	_, err = code.Pull(t.Context(), api.PullRequest{})
	mustRefuse(t, err, http.StatusInternalServerError, "head.signed")
	trainer.stop()

	try(t, os.WriteFile(ledger, good, 0o600))
	trainer = startNode(t, cfg)
	_, catalogue, _, _ := trainer.of(t, "code").run.Latest()
	if _, whole := libraryOf(trainer.of(t, "chat")).whole(catalogue.Edges); !whole {
		t.Error("blocks of the run that had failed are gone")
	}
	trainer.stop()

	cfg.Runs = cfg.Runs[1:]
	try(t, os.WriteFile(ledger, good[:len(good)-1], 0o600))
	if n, err := New(cfg, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "head.signed") {
		t.Errorf("a node without a run that works: %v, %v", n, err)
	}
}

// A run that fails while it lives ends the calls that wait for it, and no others. The node ends with its last run.
func TestRunFailsAtItsWork(t *testing.T) {
	steps := series(t, 2)
	cfg, id := newConfig(t, mesh.RoleRollout, "")
	absent := filepath.Join(t.TempDir(), "absent")
	withRuns(cfg, []string{id.String()}, map[string]string{"chat": absent, "code": steps[0]})
	rollout := startNode(t, cfg)
	_, err := rollout.of(t, "chat").Pull(t.Context(), api.PullRequest{}) // whether it waits already or comes too late
	mustRefuse(t, err, http.StatusInternalServerError, "chat", "base checkpoint")
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := rollout.of(t, "code").Pull(short, api.PullRequest{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the other run: %v", err)
	}
	rollout.stop()

	cfg.Runs[1].Base = absent
	n, err := New(cfg, zerolog.Nop())
	try(t, err)
	if err := n.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "chat") || !strings.Contains(err.Error(), "code") {
		t.Errorf("a node whose runs have all failed: %v", err)
	}
	try(t, n.Close())
}

func TestCallsNameTheirRun(t *testing.T) {
	cfg, _ := newConfig(t, mesh.RoleTrainer, "")
	n, err := New(withRuns(cfg, nil, map[string]string{"chat": "", "code": ""}), zerolog.Nop())
	try(t, err)
	defer n.Close()
	_, err = n.In("")
	mustRefuse(t, err, http.StatusBadRequest, "several runs", "chat, code", "--run")
	_, err = n.In("maths")
	mustRefuse(t, err, http.StatusNotFound, `"maths"`, "chat, code")
	if r, err := n.In("code"); err != nil || r.Status(t.Context()).Run != "code" {
		t.Errorf("got %v, %v", r, err)
	}
}
