package node

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"pgregory.net/rapid"
)

func TestDue(t *testing.T) {
	chain := func(n int) (edges []mesh.Edge) {
		for i := range n {
			edges = append(edges, edge(fmt.Sprint("v", i), fmt.Sprint("v", i+1), 100))
		}
		return edges
	}
	const plenty = 1e6
	base := []delta.Root{root("v0")}
	both := []delta.Root{root("v0"), {}}
	for name, c := range map[string]struct {
		edges    []mesh.Edge
		head     string
		starts   []delta.Root
		held     []string
		reverse  int
		room     uint64
		from, to string // of the wish, none when empty
	}{
		"nothing yet":              {nil, "v0", base, []string{"v0"}, 8, plenty, "", ""},
		"edge back":                {chain(2), "v2", nil, []string{"v1", "v2"}, 8, plenty, "v2", "v1"},
		"no edge back to the base": {chain(1), "v1", base, []string{"v0", "v1"}, 8, plenty, "", ""},
		"no edges back":            {chain(2), "v2", nil, []string{"v1", "v2"}, 0, plenty, "", ""},
		"no room for edges back":   {chain(2), "v2", nil, []string{"v1", "v2"}, 8, 99, "", ""},
		"just room for edges back": {chain(2), "v2", nil, []string{"v1", "v2"}, 8, 100, "v2", "v1"},
		"edge back there":          {append(chain(2), edge("v2", "v1", 90)), "v2", nil, []string{"v1", "v2"}, 8, plenty, "", ""},
		"older one not here":       {append(chain(3), edge("v3", "v2", 9)), "v3", nil, []string{"v3", "v2"}, 8, plenty, "", ""},
		"edge back is too old":     {append(chain(3), edge("v3", "v2", 9)), "v3", nil, []string{"v1", "v2"}, 1, plenty, "", ""},
		"shortcut from the base":   {chain(2), "v2", base, []string{"v0", "v2"}, 0, plenty, "v0", "v2"},
		"slack left":               {append(chain(2), edge("v0", "v1", 190)), "v2", base, []string{"v0", "v2"}, 0, plenty, "", ""},
		"shortcut is fresh":        {append(chain(2), edge("v0", "v2", 180)), "v2", base, []string{"v0", "v2"}, 0, plenty, "", ""},
		"head is not here":         {chain(4), "v4", base, []string{"v0"}, 0, plenty, "", ""},
		"first anchor":             {chain(1), "v1", both, []string{"v0", "v1"}, 0, plenty, "0", "v1"},
		"anchor is good enough":    {append([]mesh.Edge{edge("0", "v0", 300)}, chain(1)...), "v1", both, []string{"v0", "v1"}, 0, plenty, "", ""},
		"anchor got old":           {append([]mesh.Edge{edge("0", "v0", 300)}, chain(2)...), "v2", both[1:], []string{"v0", "v2"}, 0, plenty, "0", "v2"},
		"there and back and there": {[]mesh.Edge{edge("v0", "v2", 200), edge("v0", "v1", 100)}, "v2", base, []string{"v0", "v2"}, 0, plenty, "", ""},
		"base reached by anchors":  {[]mesh.Edge{edge("0", "v3", 300)}, "v3", base, []string{"v0", "v3"}, 0, plenty, "v0", "v3"},
	} {
		o := offering{
			pledge: pledge{head: root(c.head), base: root("v0"), starts: c.starts},
			edges:  c.edges, reverse: c.reverse, slack: 0.5, room: c.room,
		}
		for _, s := range c.held {
			o.held = append(o.held, root(s))
		}
		got, ok := due(o)
		if want := (wish{root(c.from), root(c.to)}); ok != (c.to != "") || ok && got != want {
			t.Errorf("%s: %v from %s to %s", name, ok, word(got.base), word(got.target))
		}
	}
}

// TestOfferNeverStrands plays random runs with random limits: whatever is published, there is always a way from the base
// and from nothing, the wishes come to an end, and no way costs much more than a shortcut that was made.
func TestOfferNeverStrands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimits(t)
		slack := rapid.SampledFrom([]float64{0.1, 0.5, 3}).Draw(t, "slack")
		size := rapid.Uint64Range(1, 100)
		version := func(i int) string { return fmt.Sprint("v", i) }
		edges := []mesh.Edge{edge("0", version(1), 1000)}
		held := []delta.Root{root("base"), root(version(1))}
		starts := []delta.Root{root("base"), {}}
		g := pledge{head: root(version(1)), newest: edges[0], base: root("base"), starts: starts}
		for i := 1; i < 30; i++ {
			if i > 1 {
				g.newest = edge(version(i-1), version(i), size.Draw(t, "delta"))
				g.head = g.newest.Target
				held = []delta.Root{root("base"), root(version(i - 1)), g.head}
				edges = append(edges, g.newest)
			}
			edges, _ = retain(edges, l, g)
			if i > 1 && rapid.IntRange(0, 3).Draw(t, "busy") == 0 {
				continue // the next publish comes before anything else is coded
			}
			settled := false
			for n := 0; !settled; n++ {
				w, ok := due(offering{g, edges, held, l.reverse, g.room(edges, l.bytes), slack, nil})
				if settled = !ok; settled {
					break
				}
				if n > 2+16 {
					t.Fatalf("no end of wishes, now from %s to %s with %v", word(w.base), word(w.target), edges)
				}
				added := edge(word(w.base), word(w.target), size.Draw(t, "coded"))
				edges, _ = retain(append(edges, added), l, g)
				if !slices.Contains(edges, added) {
					break
				}
			}
			for _, start := range starts {
				path, err := Plan([]delta.Root{start}, g.head, edges)
				if err != nil {
					t.Fatalf("version %d, from %s: %v", i, word(start), err)
				}
				newest, ok := newestFrom(edges, start)
				if settled && (!ok || float64(coded(path)) > (1+slack)*float64(newest.Coded)) {
					t.Fatalf("the way from %s costs %d, a shortcut about %d", word(start), coded(path), newest.Coded)
				}
			}
		}
	})
}

// TestWishesEnd plays random runs that come back to the same states again and again. What an edge costs depends on its
// ends alone. After every publish the wishes come to an end, each of them new, also where limits take one for another.
func TestWishesEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.MapOfN(rapid.StringMatching("[0-5][0-5]"), rapid.Uint64Range(1, 100), 0, 30).Draw(t, "sizes")
		code := func(base, target delta.Root) mesh.Edge {
			return edge(word(base), word(target), cmp.Or(sizes[word(base)+word(target)], 7))
		}
		l := drawLimits(t)
		slack := rapid.SampledFrom([]float64{0.1, 0.5, 3}).Draw(t, "slack")
		starts := rapid.SampledFrom([][]delta.Root{{root("1")}, {{}}, {root("1"), {}}}).Draw(t, "starts")
		head := root("1")
		var edges []mesh.Edge
		for _, state := range rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2", "3", "4", "5"}), 1, 20).Draw(t, "states") {
			g := pledge{head: root(state), before: head, base: root("1"), starts: starts}
			if e := code(head, g.head); head != g.head && !slices.Contains(edges, e) {
				edges, g.newest = append(edges, e), e
			}
			edges, _ = retain(edges, l, g)
			held := []delta.Root{root("1"), head, g.head}
			tried := make(map[wish]bool)
			for {
				w, ok := due(offering{g, edges, held, l.reverse, g.room(edges, l.bytes), slack, tried})
				if !ok {
					break
				}
				if tried[w] {
					t.Fatalf("no end of wishes, now again from %s to %s with %v", word(w.base), word(w.target), edges)
				}
				tried[w] = true
				e := code(w.base, w.target)
				if slices.Contains(edges, e) {
					t.Fatalf("from %s to %s is on offer already", word(w.base), word(w.target))
				}
				edges, _ = retain(append(edges, e), l, g)
			}
			head = g.head
		}
	})
}
