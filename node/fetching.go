package node

import (
	"context"
	"errors"
	"slices"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// errReplan says that something newer was heard whose path does not lead over the edge being fetched.
var errReplan = errors.New("superseded by a newer version")

// fetch brings the blocks of a path into the store and returns its manifests. It goes on when a newer version is
// heard whose path begins the same way, since then nothing is fetched in vain, and gives up with errReplan otherwise.
func (r *rollout) fetch(ctx context.Context, head mesh.Head, path []mesh.Edge) ([]*delta.Manifest, error) {
	r.board.setState(api.StateFetching)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	manifests := make([]*delta.Manifest, len(path))
	go func() { done <- r.fetchPath(ctx, head, path, manifests) }()
	for {
		select {
		case err := <-done:
			if cause := context.Cause(ctx); cause != nil && err != nil {
				err = cause
			}
			return manifests, err
		case <-r.mesh.Updates():
			r.hear()
			if r.superseded(path) {
				cancel(errReplan)
			}
		}
	}
}

// superseded tells whether the newest version is reached on another path, or an edge of this one is no longer on offer.
func (r *rollout) superseded(path []mesh.Edge) bool {
	head, catalogue, _, _ := r.mesh.Latest()
	edges := offered(head, catalogue)
	if current(head, catalogue) {
		for _, e := range path {
			if !slices.Contains(catalogue.Edges, e) {
				return true
			}
		}
	}
	better, err := Plan(r.slots.held(), head.Root, edges)
	if err != nil {
		return false
	}
	for i, e := range path {
		if i >= len(better) || better[i].Manifest != e.Manifest {
			return true
		}
	}
	return false
}

// current tells whether the catalogue is not older than the head: the two arrive apart.
func current(h mesh.Head, c mesh.Catalogue) bool {
	if h.Edge.Manifest.Defined() {
		return slices.Contains(c.Edges, h.Edge)
	}
	return c.Epoch >= h.Version.Epoch
}

func (r *rollout) fetchPath(ctx context.Context, head mesh.Head, path []mesh.Edge, manifests []*delta.Manifest) error {
	if err := r.keepSchema(ctx, path[0].Base); err != nil {
		return err
	}
	progress := api.Progress{}
	for i, e := range path {
		m, err := r.library.manifest(ctx, e)
		if err != nil {
			return err
		}
		if _, err := r.library.schema(ctx, m.Schema); err != nil {
			return err
		}
		manifests[i] = m
		progress.ChunksTotal += len(m.Chunks)
	}
	progress.Version = versionInfo(head, manifests[len(path)-1])
	before := progress
	for i, e := range path {
		m := manifests[i]
		err := r.mesh.Fetch(ctx, e.Manifest, m, func(done, total int) {
			progress.ChunksDone = before.ChunksDone + done
			progress.Bytes = before.Bytes + min(uint64(done)*uint64(m.ChunkSize), m.Coded)
			p := progress
			r.board.update(func(b *board) { b.progress = &p })
		})
		if err != nil {
			return err
		}
		before.ChunksDone += len(m.Chunks)
		before.Bytes += m.Coded
	}
	return nil
}

// keepSchema puts the schema of a held state into the store, where the deltas that start from it are going to need it.
func (r *rollout) keepSchema(ctx context.Context, root delta.Root) error {
	_, c, err := r.slots.open(ctx, root)
	if err != nil || c == nil {
		return err
	}
	defer c.Close()
	return r.library.keepSchema(c.Schema())
}
