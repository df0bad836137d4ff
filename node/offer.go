package node

import (
	"slices"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

// offering is what a trainer has on offer, and what it could add.
type offering struct {
	pledge
	edges   []mesh.Edge   // the oldest first
	held    []delta.Root  // states that are here to code from
	reverse int           // newest deltas that want an edge back
	room    uint64        // coded bytes that what must stay leaves for others
	slack   float64       // how much dearer than a new shortcut a path may be
	tried   map[wish]bool // what was coded for this head already
}

// wish is an edge that is worth coding.
type wish struct{ base, target delta.Root }

// due returns what the offer lacks most. Edges back come first: they are cheap, and the older state is here only until
// the next version. A shortcut from a start is due when no path leads from there to the head, or when the cheapest one
// costs more than a new shortcut may be expected to, with some slack: as much as the newest shortcut from there. So
// the cost of shortcuts over a run stays in proportion to that of its deltas, and each makes itself not due. Where limits
// take one edge for another, each is coded once a head at most, or there would be no end.
func due(o offering) (w wish, ok bool) {
	if w, ok := dueReverse(o); ok {
		return w, true
	}
	for _, start := range o.starts {
		w := wish{start, o.head}
		if start != o.head && !o.tried[w] && dueShortcut(o, start) && slices.Contains(o.held, o.head) {
			return w, true
		}
	}
	return wish{}, false
}

func dueReverse(o offering) (wish, bool) {
	left := o.reverse
	kinds := kindsOf(o.edges, o.base)
	for i, e := range slices.Backward(o.edges) {
		if kinds[i] != kindDelta { // whoever may go back to the base has it
			continue
		}
		if left--; left < 0 {
			break
		}
		here := slices.Contains(o.held, e.Base) && slices.Contains(o.held, e.Target)
		w := wish{e.Target, e.Base}
		if here && e.Coded <= o.room && !o.tried[w] && !leadsBack(o.edges, e) {
			return w, true
		}
	}
	return wish{}, false
}

func dueShortcut(o offering, start delta.Root) bool {
	if slices.ContainsFunc(o.edges, func(e mesh.Edge) bool { return e.Base == start && e.Target == o.head }) {
		return false // coded again it would be the same
	}
	way, err := o.way(start, o.edges)
	if err != nil || o.long(way) {
		return true
	}
	newest, ok := newestFrom(o.edges, start)
	if !ok { // the way begins with an anchor, though its taker holds a state
		return true
	}
	return codedBytes(way) > (1+o.slack)*float64(newest.Coded)
}
