package node

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

func TestStrayBase(t *testing.T) {
	version := func(number uint64, name string) mesh.VersionRoot {
		return mesh.VersionRoot{Version: mesh.Version{Epoch: 7, Number: number}, Root: root(name)}
	}
	head := mesh.Head{Version: mesh.Version{Epoch: 7, Number: 2}, Root: root("v2"), Edge: edge("v1", "v2", 20)}
	begun := mesh.Catalogue{
		Epoch: 7, Seq: 1, Edges: []mesh.Edge{edge("v0", "v1", 10), edge("v1", "v2", 20)},
		Versions: []mesh.VersionRoot{version(0, "v0"), version(1, "v1"), version(2, "v2")},
	}
	long := mesh.Catalogue{
		Epoch: 7, Seq: 90, Edges: []mesh.Edge{edge("base", "v1", 10), edge("v1", "v2", 20), edge("0", "v2", 50)},
		Versions: []mesh.VersionRoot{version(1, "v1"), version(2, "v2")},
	}
	for what, c := range map[string]struct {
		base delta.Root
		head mesh.Head
		cat  mesh.Catalogue
		want string // empty for no word
	}{
		"version 0":                 {root("v0"), head, begun, ""},
		"a later version":           {root("v1"), head, begun, ""},
		"the newest version":        {root("v2"), head, mesh.Catalogue{Epoch: 7, Seq: 1}, ""},
		"an edge starts there":      {root("base"), head, long, ""},
		"no base":                   {delta.Root{}, head, begun, ""},
		"nothing is known":          {root("x"), mesh.Head{}, mesh.Catalogue{}, ""},
		"the catalogue is to come":  {root("x"), head, mesh.Catalogue{}, ""},
		"it is of an older epoch":   {root("x"), head, mesh.Catalogue{Epoch: 6, Seq: 1}, ""},
		"another one":               {root("x"), head, begun, "base /x has root " + root("x").Short() + ", the run's version 0 is " + root("v0").Short() + ": set base: to "},
		"another one, long since":   {root("x"), head, long, "base /x has root " + root("x").Short() + ", from where nothing on offer starts: either "},
		"only full copies lead on":  {root("v0"), head, mesh.Catalogue{Epoch: 7, Seq: 9, Edges: []mesh.Edge{edge("0", "v2", 50)}}, "from where nothing on offer starts"},
		"only a full copy is of it": {root("x"), head, mesh.Catalogue{Epoch: 7, Seq: 9, Edges: []mesh.Edge{edge("0", "x", 50)}}, "from where nothing on offer starts"},
	} {
		got := strayBase(paths{"": "/x"}, c.base, c.head, c.cat)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", what, got, c.want)
		}
	}
	if got := strayBase(paths{"policy": "/p", "draft": "/d"}, root("x"), head, begun); !strings.HasPrefix(got, "base draft=/d policy=/p has root ") {
		t.Errorf("of two states: %q", got)
	}
}

// A rollout with another base than the trainer's says so: while no way leads on for it, after a full copy was taken
// instead, and after a restart. Nothing leads an engine to that base then. One with the right base never does.
func TestWrongBaseIsExplained(t *testing.T) {
	steps := series(t, 4)
	trainerCfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	trainer := startNode(t, trainerCfg)
	wrongCfg := followerOf(t, trainer, id, steps[3])
	wrong, right := startNode(t, wrongCfg), startNode(t, followerOf(t, trainer, id, steps[0]))
	want := "base " + steps[3] + " has root " + rootOf(t, steps[3]).Short() + ", the run's version 0 is " + rootOf(t, steps[0]).Short() + ": set base: to the checkpoint"
	explained := func(s api.Status) bool { return strings.Contains(strings.Join(s.Problems, "\n"), want) }

	right.mustPull(t, trainer.mustPublish(t, steps[1]).Number, steps[1])
	s := wrong.waitFor(t, "an error and its cause", func(s api.Status) bool { return s.State == api.StateError && explained(s) })
	if !strings.Contains(s.Error, "base:") || !strings.Contains(s.Error, "--full") {
		t.Errorf("status says %q", s.Error)
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := wrong.Pull(short, api.PullRequest{})
	mustRefuse(t, err, http.StatusGatewayTimeout, "base:", "helps only once")
	leadsNowhere := func() {
		t.Helper()
		if to, err := os.Readlink(wrong.part.dir.Path("current")); err == nil {
			t.Errorf("current leads to %s", to)
		}
	}
	leadsNowhere()
	wrong.stop()
	wrong = startNode(t, wrongCfg)
	wrong.waitFor(t, "the cause again", explained)
	leadsNowhere()
	r, err := trainer.Publish(t.Context(), api.PublishRequest{Path: steps[2], Full: true})
	try(t, err)
	wrong.mustPull(t, r.Number, steps[2])
	right.mustPull(t, r.Number, steps[2])
	if s := wrong.Status(t.Context()); !explained(s) {
		t.Errorf("after a full copy: %q", s.Problems)
	}
	wrong.stop()
	wrong = startNode(t, wrongCfg)
	wrong.waitFor(t, "the cause after a restart", explained)
	if s := right.Status(t.Context()); len(s.Problems) > 0 {
		t.Errorf("with the right base: %q", s.Problems)
	}
}
