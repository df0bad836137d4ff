package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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
	pause := firstPause
	for ctx.Err() == nil {
		if r.attempt(ctx, pause) {
			pause = min(2*pause, longPause)
		} else {
			pause = firstPause
		}
	}
	return nil
}

// attempt follows until there is news, or for a pause after a failure, and tells whether there was one. What is fetched
// stays, so the next attempt goes on from there with the newest edge first: one that nobody can deliver must not hold
// up the rest.
func (r *relay) attempt(ctx context.Context, pause time.Duration) (failed bool) {
	following, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	done := make(chan error, 1)
	work.Go(func() { done <- r.follow(following) })
	var retry <-chan time.Time
	for {
		select {
		case err := <-done:
			if err != nil && ctx.Err() == nil {
				r.log.Error().Err(err).Stringer("retry_in", pause).Msg("some of what is on offer could not be fetched")
				failed, retry = true, time.After(pause)
			}
		case <-retry:
			return failed
		case <-r.mesh.Updates():
			return failed
		case <-ctx.Done():
			return failed
		}
	}
}

// follow forgets what is no longer on offer and fetches what is, the newest first.
func (r *relay) follow(ctx context.Context) error {
	head, catalogue, _, ok := r.mesh.Latest()
	if !ok {
		return nil
	}
	r.board.update(func(b *board) { v := versionInfo(head, nil); b.latest = &v })
	r.board.setState(api.StateFetching)
	edges := offered(head, catalogue)
	if _, err := r.library.retain(edges); err != nil {
		return err
	}
	var errs []error
	for _, e := range slices.Backward(edges) {
		if err := r.fetch(ctx, e); err != nil {
			errs = append(errs, fmt.Errorf("edge to %s: %w", e.Target.Short(), err))
		} else if e == head.Edge {
			r.board.serve(readyNow(head), "") // the older ones are for late joiners
		}
	}
	if len(errs) == 0 {
		r.board.serve(readyNow(head), "")
		return nil
	}
	err := errors.Join(errs...)
	r.board.fail(err)
	return err
}

func readyNow(h mesh.Head) api.VersionInfo {
	v := versionInfo(h, nil)
	v.ReadyAt = time.Now().UnixMilli()
	return v
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
