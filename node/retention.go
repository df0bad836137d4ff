package node

import (
	"slices"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

// limits bound what stays on offer.
type limits struct {
	versions int    // deltas, the newest
	reverse  int    // reverse edges, the newest
	bytes    uint64 // coded bytes of all edges together, 0 for no limit
}

// spare is how many edges from each start stay: the newest, and the one that somebody may be fetching still.
const spare = 2

// retain returns the edges that stay on offer, in their order, the oldest first. The cheapest path from every start to
// the head stays, and so does the newest delta, even beyond the limits, which excess then reports. What else the limits
// allow stays with it, the newest first.
func retain(edges []mesh.Edge, l limits, g pledge) (kept []mesh.Edge, excess bool) {
	stay, excess := needed(edges, g)
	var bytes uint64
	for e := range stay {
		bytes += min(e.Coded, ^bytes)
	}
	excess = excess || l.bytes > 0 && bytes > l.bytes
	for _, e := range allowed(edges, l, g.base) {
		if stay[e] {
			continue
		}
		full := l.bytes > 0 && (bytes > l.bytes || e.Coded > l.bytes-bytes) || len(stay) >= g.bound()
		if full {
			break // what is older goes, too, however small
		}
		stay[e] = true
		bytes += e.Coded
	}
	return withoutLoose(edges, stay, g), excess
}

// allowed returns what the counts let stay, the newest first. With a delta comes the edge from the base to where it
// begins, so that the delta can be followed all the way: when the trainer is gone, those are what others are likely to
// hold. Since each shortcut waits until the deltas since the last one cost a share of it, those inside the window of
// deltas cost no more than a multiple of these.
func allowed(edges []mesh.Edge, l limits, base delta.Root) []mesh.Edge {
	left := map[kind]int{kindDelta: l.versions, kindReverse: l.reverse, kindBase: min(spare, l.versions), kindAnchor: min(spare, l.versions)}
	kinds := kindsOf(edges, base)
	to := make(map[delta.Root][]mesh.Edge) // edges from the base, by where they lead
	for i, e := range slices.Backward(edges) {
		if kinds[i] == kindBase {
			to[e.Target] = append(to[e.Target], e)
		}
	}
	var list []mesh.Edge
	for i, e := range slices.Backward(edges) {
		if left[kinds[i]] == 0 {
			continue
		}
		left[kinds[i]]--
		list = append(list, e)
		if kinds[i] == kindDelta {
			list = append(list, to[e.Base]...) // after the delta: if that one goes, they go
			delete(to, e.Base)
		}
	}
	return list
}

// withoutLoose leaves out reverse edges whose forward edge goes: without it they are no reverse edges any more. Those
// that must stay do.
func withoutLoose(edges []mesh.Edge, stay map[mesh.Edge]bool, g pledge) []mesh.Edge {
	must, _ := needed(edges, g)
	kinds := kindsOf(edges, g.base)
	var kept []mesh.Edge
	for i, e := range edges {
		if stay[e] && (kinds[i] != kindReverse || must[e] || leadsBack(kept, e)) {
			kept = append(kept, e)
			delete(stay, e) // the same edge again adds nothing
		}
	}
	return kept
}

// leadsBack tells whether one of the edges leads the other way.
func leadsBack(edges []mesh.Edge, e mesh.Edge) bool {
	return slices.ContainsFunc(edges, func(f mesh.Edge) bool { return f.Base == e.Target && f.Target == e.Base })
}
