package node

import (
	"net/http"
	"testing"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// A script that has not heard whether its publish came through tries again: the same number with the same weights is the
// same version, and nothing is published twice. Anything else under that number is refused.
func TestPublishIsTriedAgain(t *testing.T) {
	steps := series(t, 3)
	cfg, _ := newConfig(t, mesh.RoleTrainer, steps[0])
	trainer := startNode(t, cfg)
	trainer.mustPublish(t, steps[1])
	publish := func(path string, number uint64, change func(*api.PublishRequest)) (api.PublishResult, error) {
		r := api.PublishRequest{Path: path, Number: &number}
		if change != nil {
			change(&r)
		}
		return trainer.Publish(t.Context(), r)
	}
	first, err := publish(steps[2], 5, nil)
	try(t, err)
	again, err := publish(steps[2], 5, nil)
	if first.Again || !again.Again {
		t.Errorf("published already: at first %v, then %v", first.Again, again.Again)
	}
	if err != nil || again.VersionInfo != first.VersionInfo {
		t.Fatalf("tried again: %+v, %v; want %+v", again.VersionInfo, err, first.VersionInfo)
	}
	if s := trainer.Status(t.Context()); s.Latest.ID() != first.ID() || len(s.History) != 2 {
		t.Errorf("published twice: %+v, history %+v", s.Latest, s.History)
	}
	for what, c := range map[string]struct {
		path   string
		number uint64
		change func(*api.PublishRequest)
		code   int
		words  []string
	}{
		"other weights": {steps[1], 5, nil, http.StatusConflict, []string{
			"5 is published already, with other weights (root " + first.Root.Short() + ", not " + rootOf(t, steps[1]).Short() + ")", "--new-epoch",
		}},
		"an older step":          {steps[1], 1, nil, http.StatusConflict, []string{"number 1 is not above 5"}},
		"other weights, in full": {steps[1], 5, func(r *api.PublishRequest) { r.Full = true }, http.StatusConflict, []string{"with other weights"}},
		"no checkpoint":          {t.TempDir(), 5, nil, http.StatusConflict, []string{"number 5 is not above 5", "no *.safetensors"}},
		"under a name": {"", 5, func(r *api.PublishRequest) { r.Paths = map[string]string{"policy": steps[2]} }, http.StatusConflict, []string{
			"with other weights",
		}},
	} {
		r, err := publish(c.path, c.number, c.change)
		if err == nil {
			t.Errorf("%s under a number that is taken: published %+v", what, r.VersionInfo)
			continue
		}
		mustRefuse(t, err, c.code, c.words...)
	}
	fresh, err := publish(steps[2], 5, func(r *api.PublishRequest) { r.NewEpoch = true })
	if err != nil || fresh.Epoch <= first.Epoch {
		t.Errorf("in a new epoch: %+v, %v", fresh.VersionInfo, err)
	}
}
