package node

import (
	"fmt"
	"slices"
	"sync"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

// shelf decides what the block store of a node keeps, over all its runs: the blocks of edges on offer, of edges that
// left the offer with the newest head and that somebody may be fetching still, of those that left it before and that a
// peer says it is fetching, of ways back that are kept here, of edges that somebody here reads, and those that are being
// written. Everything else goes with the next sweep.
type shelf struct {
	library library
	wanted  func(manifest cid.Cid) bool // by a peer

	mu      sync.Mutex // held during a sweep, so that nothing is put back on the shelf that is being cleared from it
	runs    map[string]*stock
	memos   map[string]*memo[stockKept]
	readers map[mesh.Edge]int
	drafts  map[*draft]bool
	hidden  []string // runs of which it is not known what they need
}

// stock is what one run needs.
type stock struct {
	head      mesh.Version
	edges     []mesh.Edge // on offer
	leaving   []mesh.Edge // not any more, since that head
	lingering []lingerer  // not any more, since an earlier one; what is wanted first, the oldest before
	unheard   bool        // no newer head has come since the start
}

// lingerer is an edge that left the offer while a peer was fetching it.
type lingerer struct {
	edge mesh.Edge
	idle bool // no peer wanted it when the newest head came: its link may have been down
}

func newShelf(l library, wanted func(manifest cid.Cid) bool) *shelf {
	return &shelf{
		library: l, wanted: wanted, runs: make(map[string]*stock), memos: make(map[string]*memo[stockKept]),
		readers: make(map[mesh.Edge]int), drafts: make(map[*draft]bool),
	}
}

// offer says what a run has on offer by now, and its newest version. What leaves the offer stays until a newer version
// comes, for those who have read the last catalogue and are slower than this node. Where a link is slower than the
// publishes that is not long enough: what a peer is fetching stays until it has not been for one version.
func (s *shelf) offer(run string, head mesh.Version, edges []mesh.Edge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.runs[run]
	if k == nil {
		k = &stock{head: head}
		s.runs[run] = k
	}
	k.change(head, edges, s.wanted)
	if m := s.memos[run]; m != nil {
		m.keep(k.kept())
	}
}

// change is offer for one run.
func (k *stock) change(head mesh.Version, edges []mesh.Edge, wanted func(cid.Cid) bool) {
	if k.head != head {
		k.linger(wanted)
		k.head, k.leaving = head, nil
	}
	now := edgeSet(edges)
	k.leaving = slices.DeleteFunc(k.leaving, func(e mesh.Edge) bool { return now[e] }) // it came back
	k.lingering = slices.DeleteFunc(k.lingering, func(l lingerer) bool { return now[l.edge] })
	for _, e := range k.edges {
		if !now[e] {
			k.leaving = append(k.leaving, e)
		}
	}
	k.edges = slices.Clone(edges)
	k.bound()
}

// linger goes over what left the offer when a newer head comes. What is wanted comes first.
func (k *stock) linger(wanted func(cid.Cid) bool) {
	var stay, idle []lingerer
	for _, l := range k.lingering {
		if wanted(l.edge.Manifest) {
			stay = append(stay, lingerer{edge: l.edge})
		} else if !l.idle {
			idle = append(idle, lingerer{l.edge, true})
		}
	}
	for _, e := range k.leaving {
		if wanted(e.Manifest) {
			stay = append(stay, lingerer{edge: e})
		} else if k.unheard {
			idle = append(idle, lingerer{e, true})
		}
	}
	k.lingering, k.unheard = slices.Concat(stay, idle), false
}

// bound lets no more linger than is on offer, in coded bytes, or one edge. Who has fetched one for longest is likely to
// be done first, and makes room.
func (k *stock) bound() {
	room := codedBytes(k.edges)
	for i, l := range k.lingering {
		if room -= float64(l.edge.Coded); room < 0 && i > 0 {
			k.lingering = k.lingering[:i]
			return
		}
	}
}

// add says that a run needs one more edge.
func (s *shelf) add(run string, e mesh.Edge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.runs[run]; k != nil && !slices.Contains(k.edges, e) {
		k.edges = append(k.edges, e)
	}
}

// lingers returns what a run has no longer on offer, and what stays for those who are fetching it still.
func (s *shelf) lingers(run string) (edges []mesh.Edge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.runs[run]
	if k == nil {
		return nil
	}
	for _, l := range k.lingering {
		edges = append(edges, l.edge)
	}
	return append(edges, k.leaving...)
}

func edgeSet(edges []mesh.Edge) map[mesh.Edge]bool {
	set := make(map[mesh.Edge]bool, len(edges))
	for _, e := range edges {
		set[e] = true
	}
	return set
}

// hide says that it cannot be known what a run needs: nothing is removed from now on, since what is the run's may be
// here only.
func (s *shelf) hide(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hidden = append(s.hidden, run)
}

// read keeps the blocks of edges, those that are still to come included, until release is called.
func (s *shelf) read(edges ...mesh.Edge) (release func()) {
	edges = slices.Clone(edges)
	s.count(edges, 1)
	return sync.OnceFunc(func() { s.count(edges, -1) })
}

func (s *shelf) count(edges []mesh.Edge, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range edges {
		if s.readers[e] += by; s.readers[e] == 0 {
			delete(s.readers, e)
		}
	}
}

// sweep deletes every block that nobody needs.
func (s *shelf) sweep() (deleted int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.hidden) > 0 {
		return 0, nil
	}
	needed, err := s.needed()
	if err != nil {
		return 0, err
	}
	all, err := s.library.store.List()
	if err != nil {
		return 0, fmt.Errorf("list blocks: %w", err)
	}
	for _, id := range all {
		if needed[id] {
			continue
		}
		if err := s.library.store.Delete(id); err != nil {
			return deleted, fmt.Errorf("delete block: %w", err)
		}
		deleted++
	}
	return deleted, nil
}

func (s *shelf) needed() (map[cid.Cid]bool, error) {
	edges := make(map[mesh.Edge]bool, len(s.readers))
	for _, k := range s.runs {
		for _, e := range slices.Concat(k.edges, k.leaving) {
			edges[e] = true
		}
		for _, l := range k.lingering {
			edges[l.edge] = true
		}
	}
	for e := range s.readers {
		edges[e] = true
	}
	needed := make(map[cid.Cid]bool)
	for e := range edges {
		if err := s.library.need(needed, e.Manifest); err != nil {
			return nil, err
		}
	}
	for d := range s.drafts {
		for _, id := range d.blocks {
			needed[id] = true
		}
	}
	return needed, nil
}

// draft is an edge being written. Its blocks stay until it is closed: by then it is on offer, or given up.
type draft struct {
	shelf  *shelf
	blocks []cid.Cid
}

func (s *shelf) draft() *draft {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &draft{shelf: s}
	s.drafts[d] = true
	return d
}

// put stores a block of the edge.
func (d *draft) put(id cid.Cid, data []byte) error {
	d.shelf.mu.Lock()
	d.blocks = append(d.blocks, id)
	d.shelf.mu.Unlock()
	return d.shelf.library.store.Put(id, data)
}

// putEdge stores the schema and the manifest beside the chunks, so that the edge is whole, and returns it.
func (d *draft) putEdge(m *delta.Manifest, schema *delta.Schema) (mesh.Edge, error) {
	if err := d.put(schema.ID(), schema.Encode()); err != nil {
		return mesh.Edge{}, fmt.Errorf("keep schema: %w", err)
	}
	e, err := m.Encode()
	if err != nil {
		return mesh.Edge{}, err
	}
	for _, b := range append(e.Leaves, e.Root) {
		if err := d.put(delta.Sum(b), b); err != nil {
			return mesh.Edge{}, fmt.Errorf("keep manifest: %w", err)
		}
	}
	return mesh.Edge{Manifest: e.ID(), Base: m.Base, Target: m.Target, Coded: m.Coded}, nil
}

func (d *draft) close() {
	d.shelf.mu.Lock()
	defer d.shelf.mu.Unlock()
	delete(d.shelf.drafts, d)
}
