package node

import (
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// census counts edges on offer by kind. Every kind is there, since what is missing from a graph looks like an outage.
func census(edges []mesh.Edge, base delta.Root) map[string]api.Offer {
	count := make(map[string]api.Offer)
	for _, k := range []kind{kindDelta, kindReverse, kindBase, kindAnchor} {
		count[string(k)] = api.Offer{}
	}
	for i, k := range kindsOf(edges, base) {
		o := count[string(k)]
		o.Edges++
		o.Bytes += min(edges[i].Coded, ^o.Bytes)
		count[string(k)] = o
	}
	return count
}

// origin returns the state of version 0, the base of whoever publishes, zero when it is not known.
func origin(versions []mesh.VersionRoot) delta.Root {
	if len(versions) > 0 && versions[0].Version.Number == 0 {
		return versions[0].Root
	}
	return delta.Root{}
}

// offer notes what is on offer. Base is the state that shortcuts lead from, zero when it is not known.
func (b *board) offer(edges []mesh.Edge, base delta.Root) {
	b.update(func(b *board) { b.offers = census(edges, base) })
}
