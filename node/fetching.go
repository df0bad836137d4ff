package node

import (
	"context"
	"errors"

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
			if r.superseded(path) {
				cancel(errReplan)
			}
		}
	}
}

// superseded tells whether the newest version is reached on another path.
func (r *rollout) superseded(path []mesh.Edge) bool {
	head, catalogue, _, _ := r.mesh.Latest()
	better, err := Plan(r.slots.held(), head.Root, offered(head, catalogue))
	if err != nil {
		return false // the catalogue may lag behind its head
	}
	for i, e := range path {
		if i >= len(better) || better[i].Manifest != e.Manifest {
			return true
		}
	}
	return false
}

func (r *rollout) fetchPath(ctx context.Context, head mesh.Head, path []mesh.Edge, manifests []*delta.Manifest) error {
	if err := r.keepSchema(path[0].Base); err != nil {
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
func (r *rollout) keepSchema(root delta.Root) error {
	_, c, err := r.slots.open(root)
	if err != nil || c == nil {
		return err
	}
	defer c.Close()
	return r.library.keepSchema(c.Schema())
}
