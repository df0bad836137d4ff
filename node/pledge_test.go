package node

import (
	"fmt"
	"testing"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

func TestWay(t *testing.T) {
	g := pledge{head: root("v9"), most: 32} // five edges are long, nine are too long
	var chain []mesh.Edge
	for i := range 9 {
		chain = append(chain, edge(fmt.Sprint("v", i), fmt.Sprint("v", i+1), 1))
	}
	for name, c := range map[string]struct {
		edges []mesh.Edge
		want  int // edges
	}{
		"only the chain":             {chain, 9},
		"a dear shortcut":            {append(chain[:9:9], edge("v0", "v9", 1000)), 1},
		"a dear one part of the way": {append(chain[:9:9], edge("v0", "v4", 1000)), 6},
		"the newest counts":          {append(chain[:9:9], edge("v0", "v8", 900), edge("v0", "v6", 1000)), 4},
		"an older one helps more":    {append(chain[:9:9], edge("v0", "v9", 1000), edge("v0", "v2", 1000)), 1},
		"one that helps nothing":     {append(chain[:9:9], edge("v0", "v1", 1000)), 9},
		"one that leads elsewhere":   {append(chain[:9:9], edge("v0", "w", 1000)), 9},
	} {
		way, err := g.way(root("v0"), c.edges)
		if err != nil || len(way) != c.want {
			t.Errorf("%s: %d edges %v, %v", name, len(way), way, err)
		}
	}
	g.starts = []delta.Root{root("v0"), root("v1"), root("nowhere")}
	if got := g.crowding(chain); len(got) != 1 || got[0] != root("v0") {
		t.Errorf("too long: %v", got)
	}
}

// TestPublishesForEver plays runs in which nothing is ever due by its cost, and nothing gets done in the background: the
// offer fits a catalogue at every version all the same, and newcomers find their way. When not even the publish itself
// can make a shortcut, the offer still fits.
func TestPublishesForEver(t *testing.T) {
	const most, versions = 64, 300
	for _, starts := range [][]delta.Root{{root("v0")}, {{}}, {root("v0"), {}}, nil} {
		for _, keep := range []int{1, most / 2, 2 * most} {
			made, lost := publishAll(t, versions, pledge{base: root("v0"), starts: starts, most: most}, keep, true)
			if lost || made > len(starts)*(versions/(most/4)+1) {
				t.Errorf("keep %d, starts %v: %d shortcuts, a way was lost %v", keep, starts, made, lost)
			}
			if _, lost := publishAll(t, versions, pledge{base: root("v0"), starts: starts, most: most}, keep, false); lost != (starts != nil) {
				t.Errorf("keep %d, starts %v: without shortcuts a way was lost %v", keep, starts, lost)
			}
		}
	}
}

func publishAll(t *testing.T, versions int, g pledge, keep int, able bool) (made int, lost bool) {
	t.Helper()
	edges := []mesh.Edge{edge("0", "v0", 1e9)}
	for i := 1; i < versions; i++ {
		head := fmt.Sprint("v", i)
		g.before, g.head = root(fmt.Sprint("v", i-1)), root(head)
		g.newest = edge(word(g.before), head, 1)
		edges = append(edges, g.newest)
		for _, start := range g.crowding(edges) {
			if able {
				edges = append(edges, edge(word(start), head, 1e6))
				made++
			}
		}
		var excess bool
		edges, excess = retain(edges, limits{versions: keep, reverse: 8}, g)
		lost = lost || excess
		if len(edges) > g.most {
			t.Fatalf("version %d: %d edges on offer", i, len(edges))
		}
		for _, start := range append([]delta.Root{g.before}, g.starts...) {
			if _, err := Plan([]delta.Root{start}, g.head, edges); err != nil && (!lost || start == g.before) {
				t.Fatalf("version %d, from %s: %v", i, word(start), err)
			}
		}
	}
	return made, lost
}

// One look at the real bounds: whatever a trainer has heaped up, what it offers fits a catalogue.
func TestOfferFitsTheCatalogue(t *testing.T) {
	var edges []mesh.Edge
	var versions []mesh.VersionRoot
	for i := range 2 * maxOffered {
		edges = append(edges, edge(fmt.Sprint("v", i), fmt.Sprint("v", i+1), 1))
		versions = append(versions, mesh.VersionRoot{Version: mesh.Version{Epoch: 1, Number: uint64(i)}, Root: edges[i].Base})
	}
	last := edges[len(edges)-1]
	for _, start := range []delta.Root{root("v0"), edges[maxOffered+1].Base} {
		g := pledge{head: last.Target, newest: last, before: last.Base, base: root("v0"), starts: []delta.Root{start}}
		kept, excess := retain(edges, limits{versions: maxKeep}, g)
		c := mesh.Catalogue{Run: "r", Epoch: 1, Seq: 1, Edges: kept, Versions: versions}
		c.Note(mesh.VersionRoot{Version: mesh.Version{Epoch: 2}, Root: g.head})
		if _, err := c.Encode(); err != nil || len(kept) != maxOffered || excess != (start == root("v0")) {
			t.Errorf("from %s: %d edges, excess %v, %v", word(start), len(kept), excess, err)
		}
	}
}
