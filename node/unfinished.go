package node

import (
	"fmt"
	"slices"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

// maxUnfinished bounds the edges that are kept for downloads that were left.
const maxUnfinished = 64

// unfinishedFile names the edges of which a part may be here, so that a restart goes on with it.
const unfinishedFile = "unfinished.json"

var unfinishedNote = note[unfinishedKept]{unfinishedFile, "what downloads have begun"}

// unfinished are the edges of the download at hand, and of those that were left, as far as something of them is here: it
// may be of use on another path, also when the edge is no longer on offer. What leads to nothing new any more is
// forgotten. It belongs to the goroutine of a rollout.
type unfinished struct {
	library library
	shelf   *shelf
	list    []begun // what was begun last comes last
}

// begun is an edge that a download set out to fetch, and the version that it leads to, zero when that is not known: by
// the time that it is here no catalogue may name it.
type begun struct {
	edge    mesh.Edge
	version mesh.Version
	release func() // has its blocks swept
}

// unfinishedKept is what outlives the process.
type unfinishedKept struct {
	Edges    []mesh.Edge    `json:"edges"`
	Versions []mesh.Version `json:"versions"` // that they lead to
}

func (k unfinishedKept) check() error {
	if len(k.Edges) != len(k.Versions) {
		return fmt.Errorf("%d edges to %d versions", len(k.Edges), len(k.Versions))
	}
	return checkEdges(k.Edges)
}

func (u *unfinished) kept() (k unfinishedKept) {
	for _, b := range u.list {
		k.Edges, k.Versions = append(k.Edges, b.edge), append(k.Versions, b.version)
	}
	return k
}

// resume goes on with what was begun before a restart.
func (u *unfinished) resume(k unfinishedKept) {
	for i, e := range k.Edges {
		u.list = append(u.list, begun{e, k.Versions[i], u.shelf.read(e)})
	}
}

// begin notes the edges of a path that is about to be fetched. Their blocks stay from now on. The last edge is of no use
// without the first: the first counts as begun last.
func (u *unfinished) begin(path []mesh.Edge, names map[delta.Root]mesh.Version) {
	for _, e := range slices.Backward(path) {
		i := slices.IndexFunc(u.list, func(b begun) bool { return b.edge == e })
		if i < 0 {
			u.list = append(u.list, begun{e, names[e.Target], u.shelf.read(e)})
		} else {
			again := u.list[i]
			u.list = append(slices.Delete(u.list, i, i+1), again)
		}
	}
}

// end forgets, after a download, what has brought nothing here, and what has become too much.
func (u *unfinished) end(offer []mesh.Edge) {
	left := u.left()
	u.keep(func(b begun) bool { return left.of(b.edge) < b.edge.Coded })
	for len(u.list) > maxUnfinished {
		u.drop(u.list[0].edge)
	}
	u.bound(offer, left)
}

// bound lets what is here of edges that left the offer take no more than what is on offer, in coded bytes, or one edge.
// Others took fewer bytes than those that were begun longest ago, which go first.
func (u *unfinished) bound(offer []mesh.Edge, left remainder) {
	on, room := edgeSet(offer), codedBytes(offer)
	var off int
	gone := make(map[mesh.Edge]bool)
	for _, b := range slices.Backward(u.list) {
		if on[b.edge] {
			continue
		}
		room -= float64(b.edge.Coded - left.of(b.edge))
		gone[b.edge] = room < 0 && off > 0
		off++
	}
	u.keep(func(b begun) bool { return !gone[b.edge] })
}

// passed forgets what leads to nothing newer than v, which is served now.
func (u *unfinished) passed(v mesh.Version) {
	u.keep(func(b begun) bool { return b.version.Compare(v) > 0 })
}

// drop forgets an edge.
func (u *unfinished) drop(e mesh.Edge) { u.keep(func(b begun) bool { return b.edge != e }) }

// clear forgets everything.
func (u *unfinished) clear() { u.keep(func(begun) bool { return false }) }

func (u *unfinished) keep(want func(begun) bool) {
	u.list = slices.DeleteFunc(u.list, func(b begun) bool {
		if want(b) {
			return false
		}
		b.release()
		return true
	})
}

// left says what is still to come of each edge.
func (u *unfinished) left() remainder {
	left := make(remainder, len(u.list))
	for _, b := range u.list {
		left[b.edge] = u.library.left(b.edge)
	}
	return left
}

// among returns edges on offer together with those of which something is here.
func (u *unfinished) among(edges []mesh.Edge) []mesh.Edge {
	there := edgeSet(edges)
	joined := slices.Clone(edges)
	for _, b := range u.list {
		if !there[b.edge] && u.library.left(b.edge) < b.edge.Coded {
			joined = append(joined, b.edge)
		}
	}
	return joined
}

func begunEdges(list []begun) []mesh.Edge {
	edges := make([]mesh.Edge, len(list))
	for i, b := range list {
		edges[i] = b.edge
	}
	return edges
}

// named returns the versions that edges lead to, where they are known.
func named(list []begun) (known []mesh.VersionRoot) {
	for _, b := range list {
		if b.version != (mesh.Version{}) {
			known = append(known, mesh.VersionRoot{Version: b.version, Root: b.edge.Target})
		}
	}
	return known
}
