package node

import (
	"bytes"
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"math/bits"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

// ErrNoPath says that the edges on offer do not lead from any state held to the one wanted.
var ErrNoPath = errors.New("nothing on offer leads from what this host holds to the version wanted")

// Plan returns the path that is cheapest in coded bytes from any root held to target, its edges in the order in
// which they apply; it is nil when target is held. The zero root, where anchors start, is always held. Among equally
// cheap paths the one with fewer edges wins, then the one whose manifests come first, looked at from the last to the
// first, so the order of held and edges does not matter.
func Plan(held []delta.Root, target delta.Root, edges []mesh.Edge) (path []mesh.Edge, err error) {
	return PlanAround(held, target, edges, nil, nil)
}

// PlanAround is Plan for when some edges turned out to be unobtainable, as far as one knows: as few as possible of those
// to avoid are on the path, whatever it costs, so that they are there only when nothing else leads to target. Edges of
// which something is here cost what is left to come.
func PlanAround(held []delta.Root, target delta.Root, edges []mesh.Edge, avoid map[mesh.Edge]bool, left remainder) (path []mesh.Edge, err error) {
	from := make(map[delta.Root][]mesh.Edge)
	for _, e := range edges {
		from[e.Base] = append(from[e.Base], e)
	}
	q := &routes{{end: delta.Root{}}}
	for _, r := range held {
		*q = append(*q, &route{end: r})
	}
	heap.Init(q)
	settled := make(map[delta.Root]bool)
	for q.Len() > 0 {
		r := heap.Pop(q).(*route)
		if r.end == target {
			return r.edges(), nil
		}
		if settled[r.end] {
			continue
		}
		settled[r.end] = true
		for _, e := range from[r.end] {
			if !settled[e.Target] {
				heap.Push(q, r.extend(e, avoid[e], left.of(e)))
			}
		}
	}
	return nil, fmt.Errorf("%w (root %s): let the trainer send a full copy (sparsecast publish --full), "+
		"or copy its newest checkpoint here and set base: to it", ErrNoPath, target.Short())
}

// route is a path from a root held to end, linked from its last edge to its first.
type route struct {
	end    delta.Root
	last   mesh.Edge
	before *route // nil at a root held
	length int
	shun   int    // edges to avoid
	hi, lo uint64 // bytes to come, 128 bits: peers choose the sizes, and their sum must not wrap
}

func (r *route) extend(e mesh.Edge, avoid bool, cost uint64) *route {
	lo, carry := bits.Add64(r.lo, cost, 0)
	next := &route{end: e.Target, last: e, before: r, length: r.length + 1, shun: r.shun, hi: r.hi + carry, lo: lo}
	if avoid {
		next.shun++
	}
	return next
}

func (r *route) edges() []mesh.Edge {
	if r.length == 0 {
		return nil
	}
	path := make([]mesh.Edge, r.length)
	for i := r.length - 1; i >= 0; i, r = i-1, r.before {
		path[i] = r.last
	}
	return path
}

// compare puts the cheaper route first. Whatever was before the last edge needs no look: a state is settled by one
// route, which alone is extended, so that two with the same last edge are the same.
func (r *route) compare(s *route) int {
	return cmp.Or(
		cmp.Compare(r.shun, s.shun),
		cmp.Compare(r.hi, s.hi),
		cmp.Compare(r.lo, s.lo),
		cmp.Compare(r.length, s.length),
		compareEdges(r.last, s.last),
	)
}

// compareEdges puts edges into a total order, by manifest first.
func compareEdges(a, b mesh.Edge) int {
	return cmp.Or(
		cmp.Compare(a.Manifest.KeyString(), b.Manifest.KeyString()),
		bytes.Compare(a.Base[:], b.Base[:]),
		bytes.Compare(a.Target[:], b.Target[:]),
		cmp.Compare(a.Coded, b.Coded),
	)
}

// routes is a heap with the cheapest route on top.
type routes []*route

func (q routes) Len() int           { return len(q) }
func (q routes) Less(i, j int) bool { return q[i].compare(q[j]) < 0 }
func (q routes) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *routes) Push(x any)        { *q = append(*q, x.(*route)) }

func (q *routes) Pop() any {
	last := len(*q) - 1
	r := (*q)[last]
	*q = (*q)[:last]
	return r
}
