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
	slots   *slots
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
		return nil
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
		if err := r.bringUp(ctx, manifests); err != nil {
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

// bringUp applies the edges of a path, one after the other, into the idle slot.
func (r *rollout) bringUp(ctx context.Context, path []*delta.Manifest) error {
	r.board.setState(api.StateApplying)
	schema, err := r.library.schema(ctx, path[0].Schema)
	if err != nil {
		return err
	}
	from, old, err := r.open(path[0].Base)
	if err != nil {
		return err
	}
	if old != nil {
		defer old.Close()
	}
	to := r.slots.idle(r.served.Root)
	draft, err := r.slots.begin(to, schema, from.root)
	if err != nil {
		return err
	}
	defer draft.Abort() // nothing to do after a commit
	var state delta.State
	if old != nil {
		state = old
	}
	for _, m := range path {
		if err := delta.ApplyEdge(ctx, m, r.library.chunks(m), schema, state, draft, nil); err != nil {
			return r.blame(ctx, from, err)
		}
		state = draft // the next delta is applied in place, where nobody reads yet
	}
	return r.slots.commit(to, draft, path[len(path)-1].Target)
}

// open opens the state that a path starts from; both results are zero for an anchor.
func (r *rollout) open(root delta.Root) (slot, *delta.Checkpoint, error) {
	if root.IsZero() {
		return slot{}, nil, nil
	}
	sl, ok := r.slots.find(root)
	if !ok {
		return slot{}, nil, fmt.Errorf("state %s is not held", root.Short())
	}
	c, err := delta.OpenCheckpoint(sl.path)
	if err != nil {
		return slot{}, nil, fmt.Errorf("open slot %s: %w", sl.name, err)
	}
	return sl, c, nil
}

// blame finds out whether an edge failed because the slot that it started from is damaged. Such a slot is forgotten,
// so that the next plan starts elsewhere.
func (r *rollout) blame(ctx context.Context, from slot, err error) error {
	if !errors.Is(err, delta.ErrWrongTarget) || from.root.IsZero() {
		return err
	}
	c, openErr := delta.OpenCheckpoint(from.path)
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	defer c.Close()
	root, hashErr := delta.RootOf(ctx, c, nil)
	if hashErr != nil || root == from.root {
		return errors.Join(err, hashErr)
	}
	r.slots.disown(from)
	return fmt.Errorf("slot %s is damaged: its root is %s, not %s; it will not be used again: %w", from.name, root.Short(), from.root.Short(), err)
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
