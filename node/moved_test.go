package node

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// obey does what a node says that moves the files of a run to where its configuration has them now.
func obey(t *testing.T, text string) {
	t.Helper()
	_, command, ok := strings.Cut(text, "move it: ")
	if !ok {
		t.Fatalf("%q does not tell how", text)
	}
	if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
}

// A run of one's own becomes one of several and back: the node does not begin it anew, says what to move, and then goes
// on where it was.
func TestRunMovesIntoTheListAndBack(t *testing.T) {
	steps := series(t, 4)
	trainerCfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	trainer := startNode(t, trainerCfg)
	cfg := followerOf(t, trainer, id, steps[0])
	rollout := startNode(t, cfg)
	rollout.mustPull(t, trainer.mustPublish(t, steps[1]).Number, steps[1])
	rollout.mustPin(t, 1)
	rollout.stop()

	alone := *cfg
	other := RunConfig{Name: "other", RunOptions: cfg.RunOptions}
	cfg.Runs = []RunConfig{{Name: cfg.Run, RunOptions: cfg.RunOptions}, other}
	rollout = startNode(t, cfg)
	if rollout.of(t, "other").Status(t.Context()).State == api.StateError {
		t.Error("the other run fails, too")
	}
	s := rollout.Status(t.Context())
	if s.State != api.StateError {
		t.Fatalf("the run begins anew: %+v", s)
	}
	rollout.stop()
	if strings.Contains(s.Error, `"`) {
		t.Errorf("logs would escape quotes of %s", s.Error)
	}
	obey(t, s.Error)
	rollout = startNode(t, cfg)
	rollout.mustServe(t, 1, steps[1])
	trainer.mustPublish(t, steps[2])
	if s := rollout.mustHear(t, 2); s.Pin == nil || s.Pin.Number != 1 {
		t.Errorf("the pin is lost: %+v", s)
	}
	rollout.stop()

	n, err := New(&alone, zerolog.Nop())
	if err == nil {
		t.Fatal(n.Close(), "the run begins anew")
	}
	obey(t, err.Error())
	rollout = startNode(t, &alone)
	rollout.mustServe(t, 1, steps[1])
}

// What is to be typed can be pasted from the log as it stands there, in whatever directory a node has its data.
func TestMovePastesFromTheLog(t *testing.T) {
	for _, dir := range []string{"plain", "with a space", "$HOME", "`x`", "a;b", "~", "a&b*?[c]", "#1", "ünlike", "a=b", "a\"b", "it's"} {
		word := shellWord("/tmp/" + dir)
		if out, err := exec.Command("sh", "-c", "printf %s "+word).Output(); err != nil || string(out) != "/tmp/"+dir {
			t.Errorf("a shell reads %s as %q, %v", word, out, err)
		}
		if strings.ContainsAny(dir, `"'`) {
			continue // logs escape those whatever comes
		}
		for _, format := range []string{"console", "json"} {
			var log bytes.Buffer
			l, err := NewLogger(&log, "info", format)
			try(t, err)
			l.Error().Err(fmt.Errorf("move it: cd %s && mv a b", word)).Msg("run failed")
			if command := "cd " + word + " && mv a b"; !strings.Contains(log.String(), command) {
				t.Errorf("%s: %s does not hold %s", format, log.String(), command)
			}
		}
	}
}
