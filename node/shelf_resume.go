package node

import (
	"slices"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/mesh"
)

// A node that restarts must not sweep what a slower one is fetching from it, so what a run needs is noted. Nobody is
// connected yet when the node is up again, and whoever fetches something may come only after the next version: what had
// left the offer before stays for one version more.

// shelfFile names what a run needed of the block store.
const shelfFile = "shelf.json"

var shelfNote = note[stockKept]{shelfFile, "what peers may be fetching still"}

// stockKept is what outlives the process. What is on offer is in it, since a newer offer may be durable before a note of it.
type stockKept struct {
	Head      mesh.Version `json:"head"`
	Edges     []mesh.Edge  `json:"edges"`
	Leaving   []mesh.Edge  `json:"leaving"`
	Lingering []mesh.Edge  `json:"lingering"`
}

func (k stockKept) check() error {
	return checkEdges(slices.Concat(k.Edges, k.Leaving, k.Lingering))
}

func (k *stock) kept() stockKept {
	s := stockKept{Head: k.head, Edges: k.edges, Leaving: k.leaving}
	for _, l := range k.lingering {
		s.Lingering = append(s.Lingering, l.edge)
	}
	return s
}

func (k stockKept) stock() *stock {
	s := &stock{head: k.Head, edges: k.Edges, leaving: k.Leaving}
	for _, e := range k.Lingering {
		s.lingering = append(s.lingering, lingerer{edge: e})
	}
	return s
}

// resume takes up a run after a start: what it needed before, as m knows it, and what it has on offer by now.
func (s *shelf) resume(run string, m *memo[stockKept], head mesh.Version, edges []mesh.Edge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := m.recall().stock()
	k.change(head, edges, func(cid.Cid) bool { return true }) // nobody can say yet
	k.unheard = true
	s.runs[run], s.memos[run] = k, m
	m.keep(k.kept())
}

// offer returns what the part has on offer by what it knew at the start.
func (p *part) offer() (head mesh.Version, edges []mesh.Edge) {
	h, catalogue, _, _ := p.run.Latest()
	edges = offered(h, catalogue)
	if r, ok := p.role.(*rollout); ok {
		edges = r.ways.among(edges)
	}
	return h.Version, edges
}
