package node

import (
	"maps"
	"math"
	"testing"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

func TestCensus(t *testing.T) {
	edges := []mesh.Edge{
		edge("v0", "v1", 10), edge("v1", "v2", 20), edge("v2", "v1", 15), edge("v0", "v2", 25),
		edge("0", "v2", math.MaxUint64), edge("0", "v1", math.MaxUint64),
	}
	want := map[string]api.Offer{"base": {Edges: 2, Bytes: 35}, "delta": {Edges: 1, Bytes: 20}, "reverse": {Edges: 1, Bytes: 15}, "anchor": {Edges: 2, Bytes: math.MaxUint64}}
	if got := census(edges, root("v0")); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	none := map[string]api.Offer{"base": {}, "delta": {}, "reverse": {}, "anchor": {}}
	if got := census(nil, delta.Root{}); !maps.Equal(got, none) {
		t.Errorf("of nothing: %v", got)
	}
	first := mesh.VersionRoot{Version: mesh.Version{Epoch: 7}, Root: root("v0")}
	later := mesh.VersionRoot{Version: mesh.Version{Epoch: 7, Number: 1}, Root: root("v1")}
	if got := origin([]mesh.VersionRoot{first, later}); got != root("v0") {
		t.Errorf("shortcuts from %s", word(got))
	}
	if got := origin([]mesh.VersionRoot{later}); !got.IsZero() || !origin(nil).IsZero() {
		t.Errorf("shortcuts from %s, though version 0 is not known", word(got))
	}
}

// Every role tells what is on offer, and what lies on its disk.
func TestOfferAndStoreAreTold(t *testing.T) {
	steps := series(t, 4)
	trainer, rollout := pairUp(t, steps[0])
	relayCfg := followerOf(t, trainer, trainer.host.ID(), "")
	relayCfg.Role = mesh.RoleRelay
	relay := startNode(t, relayCfg)
	for _, path := range steps[1:] {
		trainer.mustPublish(t, path)
		trainer.settle(t)
	}
	_, catalogue, _, _ := trainer.run.Latest()
	want := census(catalogue.Edges, rootOf(t, steps[0]))
	for _, n := range []*testNode{trainer, rollout, relay} {
		s := n.waitFor(t, "word of what is on offer", func(s api.Status) bool { return maps.Equal(s.Offer, want) })
		if s.Store.Blocks == 0 || s.Store.Bytes == 0 {
			t.Errorf("%s holds %+v", s.Role, s.Store)
		}
	}
	gathered, s := gather(t, trainer), trainer.Status(t.Context())
	for name, want := range map[string]float64{
		"sparsecast_store_blocks": float64(s.Store.Blocks), "sparsecast_store_bytes": float64(s.Store.Bytes),
		"sparsecast_offered_edges reverse": float64(want["reverse"].Edges), "sparsecast_offered_bytes base": float64(want["base"].Bytes),
	} {
		if got, ok := gathered[name]; !ok || got != want || want == 0 {
			t.Errorf("%s is %g (there: %t), want %g", name, got, ok, want)
		}
	}
}
