package node

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

func (n *testNode) mustPin(t *testing.T, number uint64) api.PinResult {
	t.Helper()
	r, err := n.Pin(t.Context(), api.VersionRequest{Number: &number})
	try(t, err)
	return r
}

// mustServe waits until that version is served, also when it is an older one, and demands the weights at path.
func (n *testNode) mustServe(t *testing.T, number uint64, path string) api.Status {
	t.Helper()
	s := n.waitFor(t, "a version to be served", func(s api.Status) bool { return s.Served != nil && s.Served.Number == number })
	for _, place := range []string{s.Path, n.part.dir.Path("current")} {
		if got, want := rootOf(t, place), rootOf(t, path); got != want {
			t.Fatalf("version %d at %s has root %s, want %s", number, place, got, want)
		}
	}
	return s
}

// mustHear waits until the node knows a version and has made up its mind about it.
func (n *testNode) mustHear(t *testing.T, number uint64) api.Status {
	t.Helper()
	return n.waitFor(t, "a version to be heard of", func(s api.Status) bool {
		return s.Latest != nil && s.Latest.Number == number && s.State != api.StateFetching && s.State != api.StateApplying
	})
}

func mustRefuse(t *testing.T, err error, code int, words ...string) {
	t.Helper()
	var e *api.Error
	if !errors.As(err, &e) || e.Code != code || e.Hint == "" {
		t.Fatalf("got %v (%+v), want code %d and a hint", err, e, code)
	}
	for _, w := range words {
		if !strings.Contains(e.Message+" "+e.Hint, w) {
			t.Errorf("%q, %q lack %q", e.Message, e.Hint, w)
		}
	}
}

// A pin leads back, holds over new versions and a restart, and ends with unpin.
func TestPinGoesBackAndStays(t *testing.T) {
	steps := series(t, 7)
	trainer, rollout := pairUp(t, steps[0])
	for _, path := range steps[1:5] {
		rollout.mustPull(t, trainer.mustPublish(t, path).Number, path)
	}
	if r := rollout.mustPin(t, 2); r.Problem != "" || r.Pin.Root != rootOf(t, steps[2]) || r.Pin.Epoch == 0 {
		t.Errorf("pin: %+v", r)
	}
	rollout.mustServe(t, 2, steps[2])
	trainer.mustPublish(t, steps[5])
	s := rollout.mustHear(t, 5)
	if s.Served.Number != 2 || s.Waiting != "pinned to 2" || *s.Behind != 3 || s.BehindSeconds <= 0 {
		t.Errorf("status %+v", s)
	}

	rollout.stop()
	rollout = startNode(t, rollout.cfg)
	rollout.mustServe(t, 2, steps[2])
	trainer.mustPublish(t, steps[6])
	if s := rollout.mustHear(t, 6); s.Served.Number != 2 || s.Pin == nil || len(s.History) != 1 {
		t.Errorf("after a restart: %+v", s)
	}

	r, err := rollout.Unpin(t.Context())
	if err != nil || r.Pin != nil {
		t.Errorf("unpin: %+v, %v", r, err)
	}
	rollout.mustPull(t, 6, steps[6])
	if s := rollout.Status(t.Context()); len(s.History) != 2 || s.Pin != nil || s.Waiting != "" {
		t.Errorf("after unpin: %+v", s)
	}
	rollout.stop()
	rollout = startNode(t, rollout.cfg)
	rollout.mustServe(t, 6, steps[6])
}

// What cannot be had is said at once, with what can; the node stays, and goes as soon as it comes.
func TestPinToWhatIsNotThere(t *testing.T) {
	steps := series(t, 4)
	trainer, rollout := pairUp(t, steps[0])
	rollout.mustPull(t, 0, steps[0])
	rollout.mustPull(t, trainer.mustPublish(t, steps[1]).Number, steps[1])
	r := rollout.mustPin(t, 3)
	for _, words := range []string{"waiting for version 3", "0 to 1", "unpin"} {
		if !strings.Contains(r.Problem, words) {
			t.Errorf("the problem %q lacks %q", r.Problem, words)
		}
	}
	trainer.mustPublish(t, steps[2])
	s := rollout.waitFor(t, "the newer choice", func(s api.Status) bool { return strings.Contains(s.Waiting, "0 to 2") })
	if s.State != api.StateWaiting || s.Error != "" || s.Served.Number != 1 {
		t.Errorf("status %+v", s)
	}
	trainer.mustPublish(t, steps[3])
	if s := rollout.mustServe(t, 3, steps[3]); len(s.History) != 3 {
		t.Errorf("served %+v", s.History)
	}
}

// One asks for just one version and gets it, though newer ones come; who wants more than that is told so.
func TestPullJustOneVersion(t *testing.T) {
	steps := series(t, 4)
	trainer, rollout := pairUp(t, steps[0])
	rollout.mustPull(t, 0, steps[0])
	two, three := uint64(2), uint64(3)
	type answer struct {
		api.PullResult
		err error
	}
	got := make(chan answer, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() {
		r, err := rollout.Pull(ctx, api.PullRequest{Number: &two, Exact: true})
		got <- answer{r, err}
	}()
	rollout.waitFor(t, "the pin", func(s api.Status) bool { return s.Pin != nil })
	for _, path := range steps[1:] {
		trainer.mustPublish(t, path)
	}
	a := <-got
	try(t, a.err)
	if a.Version.Number != 2 || a.Pin == nil || rootOf(t, a.Path) != rootOf(t, steps[2]) {
		t.Errorf("pulled %+v", a.PullResult)
	}
	rollout.mustHear(t, 3)
	if r, err := rollout.Pull(ctx, api.PullRequest{}); err != nil || r.Version.Number != 2 {
		t.Errorf("a pull without a number gave %+v, %v", r, err)
	}
	_, err := rollout.Pull(ctx, api.PullRequest{Number: &three})
	mustRefuse(t, err, http.StatusConflict, "pinned to 2", "unpin")
	if _, err := rollout.Unpin(ctx); err != nil {
		t.Fatal(err)
	}
	rollout.mustPull(t, 3, steps[3])
	if n := len(rollout.Status(ctx).History); n != 3 {
		t.Errorf("%d switches, want 3", n)
	}
	_, err = trainer.Pull(ctx, api.PullRequest{Number: &two, Exact: true})
	mustRefuse(t, err, http.StatusConflict, "trainer")
}

// Whoever waits for just one version learns that somebody else wants another, and a timeout says what is missing.
func TestPullJustOneVersionFails(t *testing.T) {
	steps := series(t, 2)
	_, rollout := pairUp(t, steps[0])
	rollout.mustPull(t, 0, steps[0])
	nine := uint64(9)
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := rollout.Pull(short, api.PullRequest{Number: &nine, Exact: true})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "what can be had is 0") {
		t.Errorf("a timeout gave %v", err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := rollout.Pull(t.Context(), api.PullRequest{Number: &nine, Exact: true})
		failed <- err
	}()
	rollout.waitFor(t, "the pin", func(s api.Status) bool { return s.Pin != nil })
	for {
		_, err := rollout.Unpin(t.Context())
		try(t, err)
		select {
		case err := <-failed:
			mustRefuse(t, err, http.StatusConflict, "changed")
			return
		case <-time.After(10 * time.Millisecond): // it had not pinned yet
		}
	}
}

// Where the pin cannot be read the node stays, whatever is newer, until it is told anew.
func TestPinIsDamaged(t *testing.T) {
	steps := series(t, 4)
	trainer, rollout := pairUp(t, steps[0])
	rollout.mustPull(t, trainer.mustPublish(t, steps[1]).Number, steps[1])
	rollout.mustPin(t, 1)
	rollout.stop()
	note := filepath.Join(rollout.cfg.Data, pinFile)
	b, err := os.ReadFile(note)
	try(t, err)
	try(t, os.WriteFile(note, []byte(strings.Replace(string(b), `"number":1`, `"number":0`, 1)), 0o600))
	trainer.mustPublish(t, steps[2])
	rollout = startNode(t, rollout.cfg)
	s := rollout.waitFor(t, "an error", func(s api.Status) bool { return s.State == api.StateError && s.Latest != nil && s.Latest.Number == 2 })
	if s.Served.Number != 1 || !strings.Contains(s.Error, pinFile) || !strings.Contains(s.Error, "unpin") {
		t.Errorf("status %+v", s)
	}
	rollout.mustServe(t, 1, steps[1])
	if _, err := rollout.Unpin(t.Context()); err != nil {
		t.Fatal(err)
	}
	rollout.mustPull(t, 2, steps[2])
}

func TestMaxLagSkipsVersions(t *testing.T) {
	steps := series(t, 7)
	trainer, rollout := pairUp(t, steps[0], func(c *Config) { c.MaxLag = 2 })
	rollout.mustPull(t, 0, steps[0])
	for _, path := range steps[1:3] {
		trainer.mustPublish(t, path)
	}
	s := rollout.mustHear(t, 2)
	if s.Served.Number != 0 || !strings.Contains(s.Waiting, "max_lag") || *s.Behind != 2 {
		t.Errorf("status %+v", s)
	}
	if r, err := rollout.Pull(t.Context(), api.PullRequest{}); err != nil || r.Version.Number != 0 {
		t.Errorf("what should be served now: %+v, %v", r, err)
	}
	trainer.mustPublish(t, steps[3])
	rollout.mustServe(t, 3, steps[3])
	trainer.mustPublish(t, steps[4])
	rollout.mustHear(t, 4)
	rollout.mustPull(t, 4, steps[4]) // whoever asks for it gets it
	if s := rollout.Status(t.Context()); len(s.History) != 3 {
		t.Errorf("served %+v", s.History)
	}
}

func TestOnlyRolloutsArePinned(t *testing.T) {
	steps := series(t, 1)
	cfg, _ := newConfig(t, mesh.RoleTrainer, steps[0])
	trainer := startNode(t, cfg)
	one := uint64(1)
	_, err := trainer.Pin(t.Context(), api.VersionRequest{Number: &one})
	mustRefuse(t, err, http.StatusConflict, "trainer", "rollout")
	_, err = trainer.Unpin(t.Context())
	mustRefuse(t, err, http.StatusConflict, "trainer")
	_, err = trainer.Pinned(t.Context())
	mustRefuse(t, err, http.StatusConflict, "trainer")
	_, err = trainer.Confirm(t.Context(), api.VersionRequest{Number: &one})
	mustRefuse(t, err, http.StatusConflict, "trainer")
}

func TestFollowingIsMeasured(t *testing.T) {
	steps := series(t, 3)
	trainer, rollout := pairUp(t, steps[0])
	rollout.mustPull(t, trainer.mustPublish(t, steps[1]).Number, steps[1])
	rollout.mustPin(t, 1)
	trainer.mustPublish(t, steps[2])
	rollout.mustHear(t, 2)
	gathered := gather(t, rollout)
	for name, want := range map[string]float64{"sparsecast_behind_versions": 1, "sparsecast_pinned": 1, "sparsecast_unconfirmed": 0} {
		if got, ok := gathered[name]; !ok || got != want {
			t.Errorf("%s is %g (there: %t), want %g", name, got, ok, want)
		}
	}
	if gathered["sparsecast_behind_seconds"] <= 0 {
		t.Error("no time since the newer version was heard of")
	}
	if _, ok := gather(t, trainer)["sparsecast_pinned"]; ok {
		t.Error("a trainer tells whether it is pinned")
	}
}

// gather scrapes the gauges of a node and its run, by name and the values of their other labels.
func gather(t *testing.T, n *testNode) map[string]float64 {
	t.Helper()
	families, err := n.metrics.Gather()
	try(t, err)
	values := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetHelp() == "" {
				t.Errorf("%s has no help", f.GetName())
			}
			name := f.GetName()
			for _, l := range m.GetLabel() {
				if l.GetName() != "run" {
					name += " " + l.GetValue()
				}
			}
			if g := m.GetGauge(); g != nil {
				values[name] = g.GetValue()
			}
		}
	}
	return values
}
