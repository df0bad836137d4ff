package node

import (
	"slices"
	"testing"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"pgregory.net/rapid"
)

// offers draws what may be on offer: a chain of deltas from the base, with edges back, shortcuts and anchors, some of it
// missing.
func offers(t *rapid.T) (edges []mesh.Edge, g pledge) {
	const letters = "abcdefghijklmnop"
	size := rapid.Uint64Range(1, 100)
	n := rapid.IntRange(1, len(letters)-1).Draw(t, "versions")
	at := func(i int) string { return letters[i : i+1] }
	g = pledge{base: root("a"), head: root(at(n))}
	for i := range n {
		newer := edge(at(i), at(i+1), size.Draw(t, "delta"))
		if rapid.IntRange(0, 9).Draw(t, "here") > 0 {
			edges = append(edges, newer)
			g.newest = newer
		}
		if rapid.Bool().Draw(t, "back") {
			edges = append(edges, edge(at(i+1), at(i), size.Draw(t, "reverse")))
		}
		if rapid.IntRange(0, 3).Draw(t, "shortcut") == 0 && i > 0 {
			edges = append(edges, edge("a", at(i+1), size.Draw(t, "squashed")))
		}
		if rapid.IntRange(0, 3).Draw(t, "anchor") == 0 {
			edges = append(edges, edge("0", at(i+1), 10*size.Draw(t, "full")))
		}
	}
	if g.newest.Target != g.head {
		g.newest = mesh.Edge{}
	}
	g.starts = rapid.SampledFrom([][]delta.Root{{g.base}, {{}}, {g.base, {}}, nil}).Draw(t, "starts")
	return edges, g
}

func drawLimits(t *rapid.T) limits {
	return limits{
		versions: rapid.IntRange(1, 16).Draw(t, "keep"), reverse: rapid.IntRange(0, 16).Draw(t, "reverse"),
		bytes: rapid.SampledFrom([]uint64{0, 1, 50, 200, 500, 2000}).Draw(t, "bytes"),
	}
}

func coded(edges []mesh.Edge) (sum uint64) {
	for _, e := range edges {
		sum += e.Coded
	}
	return sum
}

func TestRetention(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		edges, g := offers(t)
		l := drawLimits(t)
		kept, excess := retain(edges, l, g)
		if again, _ := retain(kept, l, g); !slices.Equal(again, kept) {
			t.Fatalf("%v becomes %v", kept, again)
		}
		if l.bytes > 0 && !excess && coded(kept) > l.bytes {
			t.Fatalf("%d bytes, at most %d, and not said", coded(kept), l.bytes)
		}
		if g.newest.Manifest.Defined() && !slices.Contains(kept, g.newest) {
			t.Fatal("the newest delta is gone")
		}
		counted := make(map[kind]int)
		must, _ := needed(edges, g)
		for i, k := range kindsOf(kept, g.base) {
			onward := k == kindBase && slices.ContainsFunc(kept, func(e mesh.Edge) bool { return e.Base == kept[i].Target })
			if !must[kept[i]] && !onward {
				counted[k]++
			}
		}
		if counted[kindDelta] > l.versions || counted[kindReverse] > l.reverse || counted[kindBase] > spare || counted[kindAnchor] > spare {
			t.Fatalf("limits %+v, kept %v", l, counted)
		}
		for _, start := range g.starts {
			want, err := Plan([]delta.Root{start}, g.head, edges)
			if got, _ := Plan([]delta.Root{start}, g.head, kept); err == nil && !slices.Equal(got, want) {
				t.Fatalf("the way from %s was %v and is %v", start.Short(), want, got)
			}
		}
		order := slices.DeleteFunc(slices.Clone(edges), func(e mesh.Edge) bool { return !slices.Contains(kept, e) })
		if !slices.Equal(slices.Compact(order), kept) {
			t.Fatalf("kept %v in another order than %v", kept, order)
		}
	})
}

// More room never costs an edge.
func TestRetentionIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		edges, g := offers(t)
		tight := drawLimits(t)
		wide := tight
		if tight.bytes > 0 {
			wide.bytes += rapid.Uint64Range(0, 500).Draw(t, "more bytes")
		} else {
			wide.versions += rapid.IntRange(0, 9).Draw(t, "more versions")
			wide.reverse += rapid.IntRange(0, 9).Draw(t, "more reverse")
		}
		few, _ := retain(edges, tight, g)
		many, _ := retain(edges, wide, g)
		for _, e := range few {
			if !slices.Contains(many, e) {
				t.Fatalf("%+v keeps %v, %+v only %v", tight, few, wide, many)
			}
		}
	})
}

// What must stay stays beyond the limits, and that is said.
func TestRetentionTellsExcess(t *testing.T) {
	edges := []mesh.Edge{edge("a", "b", 60), edge("b", "c", 60)}
	g := pledge{head: root("c"), newest: edges[1], base: root("a"), starts: []delta.Root{root("a")}}
	kept, excess := retain(edges, limits{versions: 1, bytes: 100}, g)
	if len(kept) != 2 || !excess {
		t.Errorf("kept %v, excess %v", kept, excess)
	}
	if _, excess = retain(edges, limits{versions: 1, bytes: 120}, g); excess {
		t.Error("excess though it fits")
	}
}

// A full copy that a user asks for is on offer afterwards, whatever the terms leave room for.
func TestAFullCopyAskedForIsKept(t *testing.T) {
	a, b := delta.Root{1}, delta.Root{2}
	delta1 := mesh.Edge{Manifest: delta.Sum([]byte("delta")), Base: a, Target: b, Coded: 10}
	anchor := mesh.Edge{Manifest: delta.Sum([]byte("anchor")), Target: b, Coded: 1000}
	edges := []mesh.Edge{delta1, anchor}
	tr := &trainer{slots: &slots{}, terms: terms{anchors: anchorsNever, limits: limits{versions: 4, bytes: 100}}}
	head := mesh.Head{Root: b, Edge: delta1}
	if kept, excess := retain(edges, tr.terms.limits, tr.pledge(head, edges, a)); len(kept) != 2 || !excess {
		t.Errorf("kept %d edges, excess %v", len(kept), excess)
	}
}
