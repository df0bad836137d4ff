package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

// library gets the parts of edges out of the store, and out of the mesh when they are not there yet.
type library struct {
	store mesh.Store
	mesh  *mesh.Run
}

// describe brings the blocks that say what e is made of here: its manifest, which must describe just that edge, with all
// leaves, and the schema. Each is where at is meanwhile.
func (l library) describe(ctx context.Context, e mesh.Edge, at *stage) (*delta.Manifest, error) {
	block := func(id cid.Cid, limit int) ([]byte, error) {
		at.enter(e, id)
		return l.mesh.Block(ctx, id, limit)
	}
	b, err := block(e.Manifest, delta.MaxManifest)
	if err != nil {
		return nil, fmt.Errorf("manifest of %s: %w", e.Target.Short(), err)
	}
	m, err := delta.DecodeManifest(b, func(id cid.Cid) ([]byte, error) { return block(id, delta.MaxLeaf) })
	if err != nil {
		return nil, err
	}
	if m.Base != e.Base || m.Target != e.Target || m.Coded != e.Coded {
		return nil, fmt.Errorf("manifest %s describes another edge than the publisher signed", e.Manifest)
	}
	at.enter(e, m.Schema)
	_, err = l.schema(ctx, m.Schema)
	return m, err
}

// stored returns the manifests of a path whose blocks must all be in the store.
func (l library) stored(path []mesh.Edge) ([]*delta.Manifest, error) {
	var manifests []*delta.Manifest
	for _, e := range path {
		b, err := l.store.Get(e.Manifest)
		if err != nil {
			return nil, fmt.Errorf("manifest of %s: %w", e.Target.Short(), err)
		}
		m, err := delta.DecodeManifest(b, l.store.Get)
		if err != nil {
			return nil, err
		}
		if !l.store.Has(m.Schema) {
			return nil, fmt.Errorf("schema %s: %w", m.Schema, mesh.ErrNotFound)
		}
		manifests = append(manifests, m)
	}
	return manifests, nil
}

func (l library) schema(ctx context.Context, id cid.Cid) (*delta.Schema, error) {
	b, err := l.mesh.Block(ctx, id, delta.MaxBlock)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", id, err)
	}
	return delta.DecodeSchema(b)
}

// whole returns those edges of which every block is in the store, and whether that is all of them. A block that has
// rotted is gone, and an edge that cannot be delivered must not be on offer.
func (l library) whole(edges []mesh.Edge) ([]mesh.Edge, bool) {
	kept := make([]mesh.Edge, 0, len(edges))
	for _, e := range edges {
		if l.has(e) {
			kept = append(kept, e)
		}
	}
	return kept, len(kept) == len(edges)
}

func (l library) has(e mesh.Edge) bool {
	manifests, err := l.stored([]mesh.Edge{e})
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(manifests[0].Chunks, func(c cid.Cid) bool { return !l.store.Has(c) })
}

// knows tells whether it is known here what an edge is made of.
func (l library) knows(e mesh.Edge) bool {
	_, err := l.stored([]mesh.Edge{e})
	return err == nil
}

// left returns how many coded bytes of an edge are still to come: all of them while it is not known what it is made of.
func (l library) left(e mesh.Edge) (bytes uint64) {
	if !l.store.Has(e.Manifest) {
		return e.Coded
	}
	manifests, err := l.stored([]mesh.Edge{e})
	if err != nil {
		return e.Coded
	}
	m := manifests[0]
	for i, c := range m.Chunks {
		if !l.store.Has(c) {
			bytes += uint64(m.ChunkLen(i))
		}
	}
	return min(bytes, e.Coded)
}

// keepSchema puts s into the store.
func (l library) keepSchema(s *delta.Schema) error {
	if err := l.store.Put(s.ID(), s.Encode()); err != nil {
		return fmt.Errorf("keep schema: %w", err)
	}
	return nil
}

// chunks returns a getter of the chunks of m, all of which are in the store.
func (l library) chunks(m *delta.Manifest) func(i int) ([]byte, error) {
	return func(i int) ([]byte, error) { return l.store.Get(m.Chunks[i]) }
}

// sift reads all chunks that lead along a path, so that what is damaged of them is dropped at once, to be fetched anew, and
// not one by one as an attempt after the other comes upon it.
func (l library) sift(ctx context.Context, path []*delta.Manifest) {
	for _, m := range path {
		for _, id := range m.Chunks {
			if ctx.Err() != nil {
				return
			}
			_, _ = l.store.Get(id) // which drops it
		}
	}
}

// need adds the blocks of an edge, as far as what is here names them. One whose manifest is not here has no blocks here,
// nor has one that this build cannot read: that must not keep others from being swept.
func (l library) need(needed map[cid.Cid]bool, manifest cid.Cid) error {
	if !manifest.Defined() || needed[manifest] {
		return nil
	}
	needed[manifest] = true
	b, err := l.store.Get(manifest)
	if errors.Is(err, mesh.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	leaves, err := delta.LeavesOf(b)
	if err != nil {
		return nil
	}
	for _, id := range leaves {
		needed[id] = true
	}
	var broken error // of the store
	m, err := delta.DecodeManifest(b, func(id cid.Cid) ([]byte, error) {
		b, err := l.store.Get(id)
		if !errors.Is(err, mesh.ErrNotFound) {
			broken = err
		}
		return b, err
	})
	if err != nil {
		return broken // without all leaves no chunk is fetched
	}
	needed[m.Schema] = true
	for _, id := range slices.Concat(m.Chunks, m.Outboard) {
		needed[id] = true
	}
	return nil
}

// offered returns the edges that lead somewhere: those of the catalogue and the head's own.
func offered(h mesh.Head, c mesh.Catalogue) []mesh.Edge {
	edges := c.Edges
	if h.Edge.Manifest.Defined() && !slices.Contains(edges, h.Edge) {
		edges = append(edges[:len(edges):len(edges)], h.Edge)
	}
	return edges
}
