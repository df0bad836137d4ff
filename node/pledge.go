package node

import (
	"cmp"
	"slices"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

// maxOffered bounds the edges of one catalogue, as package mesh does.
const maxOffered = 4096

// pledge is what no limit may take from the offer: a way to the head from every state that somebody is known to start
// from. Ways have few edges, so that all fit a catalogue and none takes a newcomer thousands of questions: for a way
// that has an eighth of a catalogue a shortcut is due whatever it costs, and no version is published that makes it
// a quarter.
type pledge struct {
	head   delta.Root
	newest mesh.Edge    // the head's own edge, its manifest undefined for none
	starts []delta.Root // states from which newcomers set out, the zero root among them when anchors are wanted
	before delta.Root   // of the version before, which most followers have; zero for none
	base   delta.Root   // of the base checkpoint, zero for none
	most   int          // edges of a catalogue, 0 for maxOffered
}

func (g pledge) bound() int { return cmp.Or(g.most, maxOffered) }

// long tells whether a way has so many edges that a shortcut is due, tooLong whether it is one that must not be let
// grow any more.
func (g pledge) long(way []mesh.Edge) bool    { return len(way) > g.bound()/8 }
func (g pledge) tooLong(way []mesh.Edge) bool { return len(way) > g.bound()/4 }

// way returns the path from start to the head that stays: the cheapest, or, when that is long, the one that begins with
// the newest edge from there that makes it short, or with the one that makes it shortest.
func (g pledge) way(start delta.Root, edges []mesh.Edge) ([]mesh.Edge, error) {
	best, err := Plan([]delta.Root{start}, g.head, edges)
	for _, e := range slices.Backward(edges) {
		if err != nil || !g.long(best) {
			break
		}
		if e.Base != start {
			continue
		}
		rest, err := Plan([]delta.Root{e.Target}, g.head, edges)
		if err == nil && 1+len(rest) < len(best) {
			best = append([]mesh.Edge{e}, rest...)
		}
	}
	return best, err
}

// crowding returns the starts whose ways are too long.
func (g pledge) crowding(edges []mesh.Edge) []delta.Root {
	return slices.DeleteFunc(slices.Clone(g.starts), func(start delta.Root) bool {
		way, err := g.way(start, edges)
		return err != nil || !g.tooLong(way)
	})
}

// needed returns the edges that must stay. Lost tells whether some way is not among them since it would not fit a
// catalogue any more.
func needed(edges []mesh.Edge, g pledge) (stay map[mesh.Edge]bool, lost bool) {
	stay = make(map[mesh.Edge]bool)
	if g.newest.Manifest.Defined() && slices.Contains(edges, g.newest) {
		stay[g.newest] = true
	}
	starts := g.starts
	if !g.before.IsZero() {
		starts = append([]delta.Root{g.before}, starts...)
	}
	for _, start := range starts {
		way, err := g.way(start, edges)
		if err != nil {
			continue // nothing to lose
		}
		way = slices.DeleteFunc(way, func(e mesh.Edge) bool { return stay[e] })
		if len(stay)+len(way) > g.bound() {
			lost = true
			continue
		}
		for _, e := range way {
			stay[e] = true
		}
	}
	return stay, lost
}

// room returns how many coded bytes the limit leaves beside what must stay.
func (g pledge) room(edges []mesh.Edge, limit uint64) uint64 {
	if limit == 0 {
		limit = ^limit
	}
	stay, _ := needed(edges, g)
	for e := range stay {
		limit -= min(e.Coded, limit)
	}
	return limit
}

// newestFrom returns the newest edge from a state.
func newestFrom(edges []mesh.Edge, start delta.Root) (mesh.Edge, bool) {
	for _, e := range slices.Backward(edges) {
		if e.Base == start {
			return e, true
		}
	}
	return mesh.Edge{}, false
}
