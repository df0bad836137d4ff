package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/files"
	"github.com/sparsecast/sparsecast/node/files/faults"
	"pgregory.net/rapid"
)

// shelved makes the blocks of an edge and puts them into a store: a schema, chunks, an outboard, and a manifest that has
// leaves when there are many chunks. The chunk before the last is in every edge.
func shelved(t fataler, store mesh.Store, name string, chunks int) (e mesh.Edge, blocks []cid.Cid) {
	t.Helper()
	put := func(b []byte) cid.Cid {
		if err := store.Put(delta.Sum(b), b); err != nil {
			t.Fatalf("put: %v", err)
		}
		blocks = append(blocks, delta.Sum(b))
		return delta.Sum(b)
	}
	m := &delta.Manifest{Target: root(name), Elements: 1, Changed: 1, Dense: 2, ChunkSize: delta.MinChunk, Coded: uint64(chunks) * delta.MinChunk}
	m.Schema = put([]byte("schema of " + name))
	for i := range chunks {
		b := fmt.Append(nil, name, i)
		if i == chunks-2 {
			b = []byte("in every edge")
		}
		m.Chunks = append(m.Chunks, put(b))
	}
	m.Outboard = append(m.Outboard, put([]byte("outboard of "+name)))
	encoded, err := m.Encode()
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	for _, leaf := range encoded.Leaves {
		put(leaf)
	}
	return mesh.Edge{Manifest: put(encoded.Root), Target: m.Target, Coded: m.Coded}, blocks
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// holds tells whether all of some blocks are in the store, and whether any is.
func holds(store mesh.Store, blocks []cid.Cid) (all, some bool) {
	some = slices.ContainsFunc(blocks, store.Has)
	all = !slices.ContainsFunc(blocks, func(id cid.Cid) bool { return !store.Has(id) })
	return all, some
}

func mustSweep(t fataler, s *shelf) {
	t.Helper()
	if _, err := s.sweep(); err != nil {
		t.Fatalf("sweep: %v", err)
	}
}

// A reader who has the last catalogue and is slower than everybody else still finds all blocks at the trainer when the
// next version is out, leaves and outboard included, and no longer when there are two.
func TestSlowReaderOfTheLastCatalogue(t *testing.T) {
	store := mesh.NewMemoryStore()
	s := newShelf(library{store: store}, nobody)
	old, blocks := shelved(t, store, "old", 1500)
	fresh, _ := shelved(t, store, "fresh", 3)
	s.offer("r", mesh.Version{Number: 1}, []mesh.Edge{old})
	s.offer("r", mesh.Version{Number: 2}, []mesh.Edge{fresh})
	s.offer("r", mesh.Version{Number: 2}, []mesh.Edge{fresh}) // the catalogue grew meanwhile
	mustSweep(t, s)
	if all, _ := holds(store, blocks); !all {
		t.Error("the edge that just left has lost blocks")
	}
	s.offer("r", mesh.Version{Number: 3}, []mesh.Edge{fresh})
	mustSweep(t, s)
	if !store.Has(blocks[1499]) {
		t.Error("a block of an edge on offer went with another that has it, too")
	}
	if _, some := holds(store, slices.Delete(blocks, 1499, 1500)); some {
		t.Error("an edge that left two versions ago is still there")
	}
}

// What a peer fetches stays beyond the newest version, for as long as it wants it and one version more: its link may be
// down when that comes. No more does than is on offer, or one edge.
func TestWhatPeersFetchStays(t *testing.T) {
	store := mesh.NewMemoryStore()
	wanted := make(map[cid.Cid]bool)
	s := newShelf(library{store: store}, func(id cid.Cid) bool { return wanted[id] })
	first := make(map[string]cid.Cid) // a chunk of each edge that no other has
	put := func(name string, chunks int) mesh.Edge {
		e, blocks := shelved(t, store, name, chunks)
		first[name] = blocks[1]
		return e
	}
	slow, large, other, step := put("slow", 3), put("large", 6), put("other", 3), put("step", 4)
	number := uint64(0)
	publish := func(there string, offer ...mesh.Edge) {
		t.Helper()
		number++
		s.offer("r", mesh.Version{Number: number}, offer)
		s.offer("r", mesh.Version{Number: number}, offer) // the catalogue comes again
		mustSweep(t, s)
		var found []string
		for name, chunk := range first {
			if store.Has(chunk) {
				found = append(found, name)
			}
		}
		slices.Sort(found)
		if got := strings.Join(found, " "); got != there {
			t.Errorf("with version %d there is %s, want %s", number, got, there)
		}
		if got, want := len(s.lingers("r")), len(found)-len(offer); got != want {
			t.Errorf("with version %d it says that %d edges linger, and %d do", number, got, want)
		}
	}
	publish("large other slow step", slow, large, other, step)
	wanted[slow.Manifest], wanted[large.Manifest] = true, true
	publish("large other slow step", other, step)
	publish("other slow step", other, step) // both would be more than is on offer
	publish("other slow step", other, step)
	wanted[slow.Manifest] = false
	publish("other slow step", other, step)
	publish("other step", other, step)
	large = put("large", 6)
	publish("large other step", other, large)
	publish("large other", other)
	publish("large other", other) // more than is on offer, but it is one
	publish("large other", other, large)
	wanted[large.Manifest] = false
	publish("large other", other)
	publish("other", other)
}

// A node that was restarted keeps what had left the offer before for one version more: nobody is connected yet who could
// say that it is fetching it. So it does when a newer version was durable before the shelf was noted.
func TestWhatPeersFetchOutlivesARestart(t *testing.T) {
	for name, behind := range map[string]bool{"noted": false, "stopped before the note": true} {
		t.Run(name, func(t *testing.T) {
			dir, err := files.Open(faults.NewDisk(time.Now).Mount(), "/data")
			try(t, err)
			store := mesh.NewMemoryStore()
			wanted := make(map[cid.Cid]bool)
			var s *shelf
			start := func(head uint64, edges ...mesh.Edge) {
				s = newShelf(library{store: store}, func(id cid.Cid) bool { return wanted[id] })
				s.resume("r", &memo[stockKept]{note: shelfNote, dir: dir, log: zerolog.Nop()}, mesh.Version{Number: head}, edges)
			}
			publish := func(head uint64, edges ...mesh.Edge) { s.offer("r", mesh.Version{Number: head}, edges) }
			wantThere := func(there bool, edges ...mesh.Edge) {
				t.Helper()
				mustSweep(t, s)
				for i, e := range edges {
					if got := s.library.has(e); got != there {
						t.Errorf("edge %d is there: %v", i, got)
					}
				}
			}
			long, last, now := plain(t, store, "long", 1), plain(t, store, "last", 1), plain(t, store, "now", 4)
			start(1, long, last, now)
			wanted[long.Manifest] = true
			publish(2, last, now)
			publish(3, last, now)
			if !behind {
				publish(4, now)
			}
			delete(wanted, long.Manifest)
			start(4, now)
			wantThere(true, long, last, now)
			publish(5, now)
			wantThere(true, long, last)
			wanted[last.Manifest] = true
			publish(6, now)
			wantThere(false, long)
			wantThere(true, last, now)
		})
	}
}

// plain makes the blocks of an edge.
func plain(t *testing.T, store mesh.Store, name string, chunks int) mesh.Edge {
	t.Helper()
	e, _ := shelved(t, store, name, chunks)
	return e
}

func TestReadersKeepWhatTheyRead(t *testing.T) {
	store := mesh.NewMemoryStore()
	s := newShelf(library{store: store}, nobody)
	e, blocks := shelved(t, store, "read", 1500)
	first, second := s.read(e), s.read(e)
	first()
	first() // once is enough
	mustSweep(t, s)
	if all, _ := holds(store, blocks); !all {
		t.Error("swept from under a reader")
	}
	second()
	mustSweep(t, s)
	if _, some := holds(store, blocks); some {
		t.Error("kept for nobody")
	}
}

func TestDraftsStayUntilTheyAreClosed(t *testing.T) {
	store := mesh.NewMemoryStore()
	s := newShelf(library{store: store}, nobody)
	d := s.draft()
	b := []byte("chunk")
	try(t, d.put(delta.Sum(b), b))
	if mustSweep(t, s); !store.Has(delta.Sum(b)) {
		t.Error("swept from under the pen")
	}
	d.close()
	if mustSweep(t, s); store.Has(delta.Sum(b)) {
		t.Error("an edge that was given up stays")
	}
}

// What cannot be read keeps nothing else from being swept.
func TestStrangeManifestIsNoObstacle(t *testing.T) {
	store := mesh.NewMemoryStore()
	s := newShelf(library{store: store}, nobody)
	strange, stray := []byte("of a later version"), []byte("stray")
	try(t, store.Put(delta.Sum(strange), strange))
	try(t, store.Put(delta.Sum(stray), stray))
	s.offer("r", mesh.Version{Number: 1}, []mesh.Edge{{Manifest: delta.Sum(strange), Target: root("a")}})
	if mustSweep(t, s); !store.Has(delta.Sum(strange)) || store.Has(delta.Sum(stray)) {
		t.Errorf("on offer: %v, stray: %v", store.Has(delta.Sum(strange)), store.Has(delta.Sum(stray)))
	}
}

// TestShelf plays offers of two runs, readers and sweeps against what must be there: what is on offer, what left with the
// newest head, and what is read; and nothing else.
func TestShelf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := mesh.NewMemoryStore()
		s := newShelf(library{store: store}, nobody)
		var edges []mesh.Edge
		blocks := make(map[mesh.Edge][]cid.Cid)
		for i := range 6 {
			e, b := shelved(t, store, fmt.Sprint("edge", i), 3)
			edges, blocks[e] = append(edges, e), b
		}
		refill := func() {
			for i := range edges {
				shelved(t, store, fmt.Sprint("edge", i), 3)
			}
		}
		some := rapid.SliceOfNDistinct(rapid.SampledFrom(edges), 0, 4, func(e mesh.Edge) string { return e.Manifest.KeyString() })
		offers, leaving := make(map[string][]mesh.Edge), make(map[string][]mesh.Edge)
		heads := make(map[string]uint64)
		readers := make(map[mesh.Edge][]func())
		t.Repeat(map[string]func(*rapid.T){
			"offer": func(t *rapid.T) {
				run, now := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "run"), some.Draw(t, "edges")
				if rapid.Bool().Draw(t, "newer") {
					heads[run]++
					leaving[run] = nil
				}
				leaving[run] = append(leaving[run], offers[run]...)
				offers[run] = now
				s.offer(run, mesh.Version{Number: heads[run]}, now)
			},
			"read": func(t *rapid.T) {
				e := rapid.SampledFrom(edges).Draw(t, "edge")
				readers[e] = append(readers[e], s.read(e))
			},
			"release": func(t *rapid.T) {
				e := rapid.SampledFrom(edges).Draw(t, "edge")
				if n := len(readers[e]); n > 0 {
					readers[e][n-1]()
					readers[e] = readers[e][:n-1]
				}
			},
			"": func(t *rapid.T) {
				refill()
				mustSweep(t, s)
				needed := make(map[cid.Cid]bool)
				for _, e := range edges {
					kept := len(readers[e]) > 0
					for _, run := range []string{"a", "b"} {
						kept = kept || slices.Contains(offers[run], e) || slices.Contains(leaving[run], e)
					}
					for _, id := range blocks[e] {
						needed[id] = needed[id] || kept
					}
				}
				for id, want := range needed {
					if store.Has(id) != want {
						t.Fatalf("block %s is there: %v", id, !want)
					}
				}
			},
		})
	})
}

func nobody(cid.Cid) bool { return false }
