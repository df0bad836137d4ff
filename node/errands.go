package node

import (
	"cmp"
	"slices"

	"github.com/sparsecast/sparsecast/mesh"
)

// A relay gets first what its peers are fetching: they have decided what is worth its bytes, they finish what was
// overtaken (see pursuit), and some have nowhere else to get it. It comes all at the same time, as it would to peers that
// reach the trainer. One after the other, what has to wait would be gone from the trainer, which keeps what is being
// fetched, and a newcomer's full copy would hold up everybody's next delta. What no peer is fetching any more is left at
// once: the peer knows something better, or comes back soon and finds here what came until then.
//
// Steps from version to version come before anybody asks where the link has room for it, the newest first. A newer one is
// no reason to leave one of which less is left: where the link is slower than the publishes none would ever be whole.
// Where newer versions come while something is fetched for peers there is no such room. What was asked for in between
// would have to arrive before what the peers want next, and before the word of what is on offer by then: they would choose
// what is gone already.

const (
	maxErrands  = 8  // fetched for peers at the same time
	maxLooks    = 4  // edges looked up at the same time
	maxUnderWay = 16 // with what stands still; fewer than a peer lets one ask for
)

// errand is something for a relay to fetch: all of an edge, or only what says which blocks there are, so that a peer can
// come to want them.
type errand struct {
	edge  mesh.Edge
	whole bool
}

// errands is what a relay could fetch. It is plain state.
type errands struct {
	wanted   []mesh.Edge // by peers, and not all here
	steps    []mesh.Edge // from version to version, and not all here, the oldest first
	unknown  []mesh.Edge // of which it is not known here what they are made of, the most likely to be wanted last
	left     remainder
	behind   bool // newer versions come while something is fetched for peers
	underWay map[errand]bool
	stalled  map[errand]bool // under way, but nobody has what comes next
	resting  map[errand]bool // nobody could deliver it just now
}

// choose returns what is to be under way. What nobody can deliver goes on, since a peer may come that has it, and holds up
// nothing else.
func (e errands) choose() []errand {
	var chosen []errand
	for _, it := range slices.Concat(toFetch(e.wanted), toFetch(e.steps), toLookAt(e.unknown)) {
		if e.stalled[it] && !slices.Contains(chosen, it) {
			chosen = append(chosen, it)
		}
	}
	room := maxUnderWay - len(chosen)
	if room <= 0 {
		return chosen
	}
	moving := e.forPeers(min(room, maxErrands))
	if len(moving) == 0 && !e.behind {
		moving = e.step()
	}
	looks := e.looks(moving)
	return slices.Concat(chosen, moving, looks[:min(len(looks), maxLooks, room-len(moving))])
}

// forPeers returns what peers are fetching, no more than room: what is under way already, then that with the least left,
// so that something is finished.
func (e errands) forPeers(room int) []errand {
	list := slices.DeleteFunc(toFetch(e.wanted), e.isHopeless)
	slices.SortStableFunc(list, func(a, b errand) int {
		switch {
		case e.underWay[a] == e.underWay[b]:
			return cmp.Compare(e.left.of(a.edge), e.left.of(b.edge))
		case e.underWay[a]:
			return -1
		}
		return 1
	})
	return list[:min(len(list), room)]
}

// step returns the step to fetch when no peer wants anything: the newest, unless less is left of one that is under way.
func (e errands) step() (best []errand) {
	for _, it := range slices.Backward(slices.DeleteFunc(toFetch(e.steps), e.isHopeless)) {
		if best == nil || e.underWay[it] && e.left.of(it.edge) < e.left.of(best[0].edge) {
			best = []errand{it}
		}
	}
	return best
}

// looks returns edges of which to find out what they are made of, the last first. It is little, and many at the same time
// wait together behind what else is on its way here.
func (e errands) looks(moving []errand) []errand {
	list := slices.DeleteFunc(toLookAt(e.unknown), func(it errand) bool {
		all := errand{it.edge, true} // begins with it
		return e.isHopeless(it) || e.isHopeless(all) || slices.Contains(moving, all)
	})
	slices.Reverse(list)
	return list
}

// isHopeless tells whether nobody can deliver something by now.
func (e errands) isHopeless(it errand) bool { return e.resting[it] || e.stalled[it] }

func toFetch(edges []mesh.Edge) []errand  { return errandsTo(edges, true) }
func toLookAt(edges []mesh.Edge) []errand { return errandsTo(edges, false) }

func errandsTo(edges []mesh.Edge, whole bool) []errand {
	list := make([]errand, len(edges))
	for i, e := range edges {
		list[i] = errand{e, whole}
	}
	return list
}
