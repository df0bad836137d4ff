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
	mesh  *mesh.Mesh
}

// manifest returns the manifest of e, which must describe just that edge.
func (l library) manifest(ctx context.Context, e mesh.Edge) (*delta.Manifest, error) {
	b, err := l.mesh.Block(ctx, e.Manifest, delta.MaxBlock)
	if err != nil {
		return nil, fmt.Errorf("manifest of %s: %w", e.Target.Short(), err)
	}
	m, err := delta.DecodeManifest(b)
	if err != nil {
		return nil, err
	}
	if m.Base != e.Base || m.Target != e.Target || m.Coded != e.Coded {
		return nil, fmt.Errorf("manifest %s describes another edge than the publisher signed", e.Manifest)
	}
	return m, nil
}

// stored returns the manifests of a path whose blocks must all be in the store.
func (l library) stored(path []mesh.Edge) ([]*delta.Manifest, error) {
	var manifests []*delta.Manifest
	for _, e := range path {
		b, err := l.store.Get(e.Manifest)
		if err != nil {
			return nil, fmt.Errorf("manifest of %s: %w", e.Target.Short(), err)
		}
		m, err := delta.DecodeManifest(b)
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

// retain deletes every block that none of the edges needs. An edge whose manifest is not here has no blocks here.
func (l library) retain(edges []mesh.Edge) (deleted int, err error) {
	needed := make(map[cid.Cid]bool)
	for _, e := range edges {
		if err := l.need(needed, e.Manifest); err != nil {
			return 0, err
		}
	}
	all, err := l.store.List()
	if err != nil {
		return 0, fmt.Errorf("list blocks: %w", err)
	}
	for _, id := range all {
		if needed[id] {
			continue
		}
		if err := l.store.Delete(id); err != nil {
			return deleted, fmt.Errorf("delete block: %w", err)
		}
		deleted++
	}
	return deleted, nil
}

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
	m, err := delta.DecodeManifest(b)
	if err != nil {
		return err
	}
	needed[m.Schema] = true
	for _, c := range m.Chunks {
		needed[c] = true
	}
	return nil
}

// offered returns the edges that lead somewhere: those of the catalogue and the head's own.
func offered(h mesh.Head, c mesh.Catalogue) []mesh.Edge {
	edges := c.Edges
	if h.Edge.Manifest.Defined() {
		edges = append(edges[:len(edges):len(edges)], h.Edge)
	}
	return edges
}
