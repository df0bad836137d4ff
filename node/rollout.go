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
			r.log.Error().Err(err).Stringer("retry_in", pause).Msg("update failed, the served version stays")
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
		r.log.Warn().Err(err).Msg("what was served is not known, finding out from the slots")
	}
	if ok && r.plausible(v) {
		if sl, ok := r.slots.find(v.Root); ok {
			return r.show(sl, v)
		}
		r.log.Warn().Uint64("number", v.Number).Msg("the served version is no longer in a slot, fetching anew")
	}
	if r.slots.base.root.IsZero() {
		return r.slots.unpoint()
	}
	return r.slots.point(r.slots.base)
}

// plausible tells whether v can have been served: nothing newer than the newest head, which was durable before, and the
// same root under the same version.
func (r *rollout) plausible(v api.VersionInfo) bool {
	head, _, _, ok := r.mesh.Latest()
	if !ok {
		return false
	}
	c := versionOf(v).Compare(head.Version)
	return c < 0 || c == 0 && v.Root == head.Root
}

// follow brings this node to the newest version it knows, and returns when it is there.
func (r *rollout) follow(ctx context.Context) error {
	for {
		head, catalogue, _, ok := r.mesh.Latest()
		if !ok {
			return nil
		}
		r.hear()
		if !r.served.Root.IsZero() && head.Version.Compare(versionOf(r.served)) <= 0 {
			r.board.setState(api.StateReady)
			r.tidy(offered(head, catalogue))
			return nil
		}
		err := r.update(ctx, head, offered(head, catalogue))
		if err != nil && !errors.Is(err, errReplan) && !errors.Is(err, errSlotLost) {
			return fmt.Errorf("version %s: %w", head.Version, err)
		}
	}
}

// hear notes the newest version for the status.
func (r *rollout) hear() {
	head, _, _, _ := r.mesh.Latest()
	v := versionInfo(head, nil)
	r.board.update(func(b *board) { b.latest = &v })
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
		if err := bringUp(ctx, r.slots, r.library, manifests); err != nil {
			return err
		}
		last = manifests[len(manifests)-1]
	}
	sl, err := r.ready(ctx, head.Root, len(path) > 0)
	if err != nil {
		return err
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

// ready returns the slot that holds root. One that was not written just now is read whole first: nobody has looked at
// it since, and disks forget.
func (r *rollout) ready(ctx context.Context, root delta.Root, fresh bool) (slot, error) {
	sl, c, err := r.slots.open(ctx, root)
	if err != nil {
		return slot{}, err
	}
	c.Close()
	if fresh || root == r.served.Root {
		return sl, nil
	}
	return sl, r.slots.examine(ctx, sl)
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

// switchTo serves the state in sl as version v from now on. The note comes before the link: after a crash in between,
// a restart goes forward to v and never back.
func (r *rollout) switchTo(sl slot, v api.VersionInfo) error {
	if err := saveServed(r.dir, v); err != nil {
		return err
	}
	return r.show(sl, v)
}

// show serves what is served already, as after a restart; nothing is written that need not be.
func (r *rollout) show(sl slot, v api.VersionInfo) error {
	if err := r.slots.point(sl); err != nil {
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
