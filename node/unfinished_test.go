package node

import (
	"slices"
	"testing"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

// What a download has brought here counts, on offer or not, until it is of no more use.
func TestUnfinished(t *testing.T) {
	store := mesh.NewMemoryStore()
	s := newShelf(library{store: store}, nobody)
	u := &unfinished{library: s.library, shelf: s}
	some, blocks := shelved(t, store, "some", 5)
	whole, _ := shelved(t, store, "whole", 3)
	none := edge("0", "none", 7)
	try(t, store.Delete(blocks[1]))
	try(t, store.Delete(blocks[2]))
	path := []mesh.Edge{whole, some, none}
	for range 2 {
		u.begin(path, map[delta.Root]mesh.Version{some.Target: {Number: 5}, whole.Target: {Number: 4}})
	}
	wantLeft := func(want map[mesh.Edge]uint64) {
		t.Helper()
		left := u.left()
		for _, e := range path {
			if n, ok := want[e]; ok != (left.of(e) < e.Coded) || ok && left.of(e) != n {
				t.Errorf("%d bytes left of the edge to %s, want %d", left.of(e), word(e.Target), n)
			}
		}
		mustSweep(t, s)
		if got := u.among(nil); len(got) != len(want) {
			t.Errorf("knows of %d edges, want %d", len(got), len(want))
		}
	}
	wantLeft(map[mesh.Edge]uint64{whole: 0, some: 2 * delta.MinChunk})
	if got := u.among([]mesh.Edge{whole, none}); len(got) != 3 {
		t.Errorf("adds what is on offer: %v", got)
	}
	u.end(path)
	wantLeft(map[mesh.Edge]uint64{whole: 0, some: 2 * delta.MinChunk})
	if known := named(u.list); len(known) != 2 {
		t.Errorf("names %v", known)
	}
	u.passed(mesh.Version{Number: 4})
	wantLeft(map[mesh.Edge]uint64{some: 2 * delta.MinChunk})
	u.clear()
	wantLeft(nil)
	if blocks, _ := store.Size(); blocks != 0 {
		t.Errorf("%d blocks are left", blocks)
	}
}

// What is here of edges that left the offer takes no more than what is on offer, or is one edge. What was begun longest ago
// goes first, and of a path what is of no use without the rest.
func TestUnfinishedIsBounded(t *testing.T) {
	store := mesh.NewMemoryStore()
	s := newShelf(library{store: store}, nobody)
	u := &unfinished{library: s.library, shelf: s}
	put := func(name string, chunks int) mesh.Edge { return plain(t, store, name, chunks) }
	start, middle, tail, later, on := put("start", 3), put("middle", 2), put("tail", 4), put("later", 5), put("on", 9)
	version := map[delta.Root]mesh.Version{}
	wantList := func(want ...mesh.Edge) {
		t.Helper()
		if got := begunEdges(u.list); !slices.Equal(got, want) {
			t.Errorf("%d edges are kept, want %d, or in another order: %v, want %v", len(got), len(want), got, want)
		}
	}
	u.begin([]mesh.Edge{on, start, middle, tail}, version)
	u.end([]mesh.Edge{on})
	wantList(tail, middle, start, on)
	u.begin([]mesh.Edge{later}, version)
	u.end([]mesh.Edge{on})
	wantList(start, on, later)
	u.begin([]mesh.Edge{start}, version)
	u.end([]mesh.Edge{on})
	wantList(on, later, start)
	u.end([]mesh.Edge{put("small", 2)})
	wantList(start)
	mustSweep(t, s)
	if !s.library.has(start) || store.Has(tail.Manifest) || store.Has(later.Manifest) {
		t.Error("the blocks that are here are not those of the edges that are kept")
	}
}

// A restart goes on with what was begun: it is kept from the first sweep on, leads to the same versions, and is forgotten
// when it is of no more use.
func TestUnfinishedOutlivesARestart(t *testing.T) {
	store := mesh.NewMemoryStore()
	s := newShelf(library{store: store}, nobody)
	u := &unfinished{library: s.library, shelf: s}
	a, _ := shelved(t, store, "a", 3)
	b, _ := shelved(t, store, "b", 3)
	u.begin([]mesh.Edge{a, b}, map[delta.Root]mesh.Version{a.Target: {Number: 4}})

	again := newShelf(library{store: store}, nobody)
	r := &unfinished{library: again.library, shelf: again}
	r.resume(u.kept())
	mustSweep(t, again)
	if !again.library.has(a) || !again.library.has(b) || !slices.Equal(named(r.list), named(u.list)) {
		t.Errorf("after a restart there is %v, want %v", r.kept(), u.kept())
	}
	r.passed(mesh.Version{Number: 4})
	mustSweep(t, again)
	if blocks, _ := store.Size(); blocks != 0 {
		t.Errorf("%d blocks are left", blocks)
	}
}
