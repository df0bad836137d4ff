package node

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// relay keeps the blocks of every edge on offer and passes them on. It holds no weights.
type relay struct {
	mesh    *mesh.Mesh
	library library
	board   *board
	log     zerolog.Logger
}

func (r *relay) run(ctx context.Context) error {
	r.board.setState(api.StateWaiting)
	for {
		retry := (<-chan time.Time)(nil)
		if err := r.follow(ctx); err != nil && ctx.Err() == nil {
			r.log.Error().Err(err).Msg("fetch failed")
			r.board.fail(err)
			retry = time.After(firstPause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-retry:
		case <-r.mesh.Updates():
		}
	}
}

// follow fetches what is on offer, the newest first, and forgets what no longer is.
func (r *relay) follow(ctx context.Context) error {
	head, catalogue, _, ok := r.mesh.Latest()
	if !ok {
		return nil
	}
	r.board.update(func(b *board) { v := versionInfo(head, nil); b.latest = &v })
	r.board.setState(api.StateFetching)
	edges := offered(head, catalogue)
	for _, e := range slices.Backward(edges) {
		if err := r.fetch(ctx, e); err != nil {
			return fmt.Errorf("edge to %s: %w", e.Target.Short(), err)
		}
	}
	if _, err := r.library.retain(edges); err != nil {
		return err
	}
	v := versionInfo(head, nil)
	v.ReadyAt = time.Now().UnixMilli()
	r.board.serve(v, "")
	return nil
}

func (r *relay) fetch(ctx context.Context, e mesh.Edge) error {
	m, err := r.library.manifest(ctx, e)
	if err != nil {
		return err
	}
	if _, err := r.library.schema(ctx, m.Schema); err != nil {
		return err
	}
	return r.mesh.Fetch(ctx, e.Manifest, m, nil)
}

func (r *relay) publish(context.Context, api.PublishRequest) (api.PublishResult, error) {
	return api.PublishResult{}, notATrainer(mesh.RoleRelay)
}
