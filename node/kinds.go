package node

import (
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

// kind says what an edge on offer is for.
type kind string

const (
	kindDelta   kind = "delta"   // from one version to a later one
	kindReverse kind = "reverse" // back again, for hosts that go back
	kindBase    kind = "base"    // from the base checkpoint, over any number of versions
	kindAnchor  kind = "anchor"  // from nothing
)

// kindsOf tells the kinds of a list of edges that begins with the oldest. A reverse edge is known by the edge before it
// that leads the other way.
func kindsOf(edges []mesh.Edge, base delta.Root) []kind {
	type ends struct{ base, target delta.Root }
	seen := make(map[ends]bool, len(edges))
	kinds := make([]kind, len(edges))
	for i, e := range edges {
		switch {
		case e.Base.IsZero():
			kinds[i] = kindAnchor
		case seen[ends{e.Target, e.Base}]:
			kinds[i] = kindReverse
		case e.Base == base:
			kinds[i] = kindBase
		default:
			kinds[i] = kindDelta
		}
		seen[ends{e.Base, e.Target}] = true
	}
	return kinds
}
