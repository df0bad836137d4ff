package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
	"github.com/sparsecast/sparsecast/node/files"
)

// rollout follows the run: it brings the newest version up in the idle slot while the other one is served, checks its
// root and switches. Whatever fails, the served slot stays as it is.
type rollout struct {
	dir     *files.Dir
	base    string // path of the base checkpoint, empty for none
	slots   *slots // opened by run
	mesh    *mesh.Mesh
	library library
	board   *board
	log     zerolog.Logger
	served  api.VersionInfo // Root is zero while nothing is served
}

// Pauses between attempts at an update that fails.
const (
	firstPause = time.Second
	longPause  = 30 * time.Second
)

// run follows until ctx ends.
func (r *rollout) run(ctx context.Context) error {
	var err error
	if r.slots, err = openSlots(ctx, r.dir, r.base, r.log); err != nil {
		return err
	}
	if err := r.resume(); err != nil {
		return err
	}
	pause := firstPause
	for {
		err := r.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		retry := (<-chan time.Time)(nil)
		if err != nil {
			r.log.Error().Err(err).Dur("retry_in", pause).Msg("update failed, the served version stays")
			r.board.fail(err)
			retry = time.After(pause)
			pause = min(2*pause, longPause)
		} else {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
			return nil
		case <-retry:
		case <-r.mesh.Updates():
		}
	}
}

// resume serves again what was served before a restart, or the base checkpoint until something newer is here.
func (r *rollout) resume() error {
	r.board.setState(api.StateWaiting)
	v, ok, err := loadServed(r.dir)
	if err != nil {
		return err
	}
	if ok {
		if sl, ok := r.slots.find(v.Root); ok {
			return r.switchTo(sl, v)
		}
		r.log.Warn().Uint64("number", v.Number).Msg("the served version is no longer in a slot, fetching anew")
	}
	if r.slots.base.root.IsZero() {
		return r.slots.unpoint()
	}
	return r.slots.point(r.slots.base)
}

// follow brings this node to the newest version it knows, and returns when it is there.
func (r *rollout) follow(ctx context.Context) error {
	for {
		head, catalogue, _, ok := r.mesh.Latest()
		if !ok {
			return nil
		}
		r.board.update(func(b *board) { v := versionInfo(head, nil); b.latest = &v })
		if !r.served.Root.IsZero() && head.Version.Compare(versionOf(r.served)) <= 0 {
			r.board.setState(api.StateReady)
			r.tidy(offered(head, catalogue))
			return nil
		}
		err := r.update(ctx, head, offered(head, catalogue))
		if err != nil && !errors.Is(err, errReplan) {
			return fmt.Errorf("version %s: %w", head.Version, err)
		}
	}
}

// update takes the steps from a state that is held to the one that head names.
func (r *rollout) update(ctx context.Context, head mesh.Head, edges []mesh.Edge) error {
	path, err := Plan(r.slots.held(), head.Root, edges)
	if err != nil {
		return err
	}
	var last *delta.Manifest
	if len(path) > 0 {
		manifests, err := r.fetch(ctx, head, path)
		if err != nil {
			return err
		}
		r.board.setState(api.StateApplying)
		if err := bringUp(ctx, r.slots, r.library, r.served.Root, manifests); err != nil {
			return err
		}
		last = manifests[len(manifests)-1]
	}
	sl, ok := r.slots.find(head.Root)
	if !ok {
		return fmt.Errorf("state %s was brought up and is gone", head.Root.Short())
	}
	v := versionInfo(head, last)
	v.ReadyAt = time.Now().UnixMilli()
	if err := r.switchTo(sl, v); err != nil {
		return err
	}
	r.log.Info().Uint64("number", v.Number).Str("root", v.Root.Short()).Uint64("changed", v.Changed).
		Uint64("coded_bytes", v.Coded).Int64("ready_after_ms", v.ReadyAt-v.PublishedAt).Msg("version ready")
	return nil
}

// tidy removes the blocks of edges that are no longer on offer.
func (r *rollout) tidy(edges []mesh.Edge) {
	n, err := r.library.retain(edges)
	if err != nil {
		r.log.Warn().Err(err).Msg("old blocks could not be removed")
	} else if n > 0 {
		r.log.Debug().Int("blocks", n).Msg("removed old blocks")
	}
}

// switchTo serves the state in sl as version v from now on.
func (r *rollout) switchTo(sl slot, v api.VersionInfo) error {
	if err := r.slots.point(sl); err != nil {
		return err
	}
	if err := saveServed(r.dir, v); err != nil {
		return err
	}
	r.served = v
	r.board.serve(v, sl.dir)
	return nil
}

func (r *rollout) publish(context.Context, api.PublishRequest) (api.PublishResult, error) {
	return api.PublishResult{}, notATrainer(mesh.RoleRollout)
}

func notATrainer(role mesh.Role) error {
	return api.NewError(http.StatusConflict, fmt.Errorf("this node is a %s and publishes nothing", role),
		"publish at the node of the trainer (role: trainer)")
}
