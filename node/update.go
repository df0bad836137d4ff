package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// servedFile names the version that is served, so that a restart goes on with it.
const servedFile = "served.json"

// errFetchAnew says that some of what was here was damaged.
var errFetchAnew = errors.New("fetching it anew")

var servedNote = note[api.VersionInfo]{servedFile, "the served version"}

// collect brings the blocks of a version here that may not be brought up yet.
func (r *rollout) collect(ctx context.Context, head mesh.Head, edges []mesh.Edge) error {
	path, err := r.plan(head.Root, edges)
	if err != nil || len(path) == 0 {
		return err
	}
	defer r.shelf.read(path...)()
	_, err = r.fetch(ctx, head, path)
	return err
}

// update takes the steps from a state that is held to the one that head names.
func (r *rollout) update(ctx context.Context, head mesh.Head, edges []mesh.Edge) error {
	path, err := r.plan(head.Root, edges)
	if err != nil {
		return err
	}
	head, path = r.nearest(head, path, edges)
	var last *delta.Manifest
	if len(path) > 0 {
		defer r.shelf.read(path...)()
		manifests, err := r.fetch(ctx, head, path)
		if err != nil {
			return err
		}
		r.board.setState(api.StateApplying)
		if err := r.apply(ctx, manifests); errors.Is(err, mesh.ErrNotFound) {
			r.library.sift(ctx, manifests)
			return fmt.Errorf("%w: %w", err, errFetchAnew)
		} else if err != nil {
			return err
		}
		last = manifests[len(manifests)-1]
		if last.Target != head.Root { // the fetch ended on the way
			head = aim(head, mesh.VersionRoot{Version: r.nameOf(last.Target), Root: last.Target})
		}
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
	r.unfinished.passed(versionOf(v))
	r.noteUnfinished()
	e := r.log.Info().Uint64("number", v.Number).Str("root", v.Root.Short()).Uint64("changed", v.Changed).Uint64("coded_bytes", v.Coded)
	if v.PublishedAt > 0 {
		e.Int64("ready_after_ms", v.ReadyAt-v.PublishedAt)
	}
	e.Msg("version ready")
	return nil
}

// apply brings a version up. Where there is only one slot nothing is served meanwhile, and what was is again when nothing
// came of it.
func (r *rollout) apply(ctx context.Context, path []*delta.Manifest) error {
	before, alone := r.served, r.slots.only != ""
	if alone {
		if err := r.slots.checkRoom(path); err != nil {
			return err
		}
		r.withdraw()
		r.board.note("slots", "the only copy of the weights is being changed: nothing is served until it is whole (slots: 1)")
		defer r.board.note("slots", "")
	}
	err := bringUp(ctx, r.slots, r.library, path)
	if err == nil || !alone || ctx.Err() != nil {
		return err
	}
	if sl, ok := r.slots.find(before.Root); ok {
		return errors.Join(err, r.show(sl, before))
	}
	return errors.Join(err, r.mendAll(ctx)) // now, and not only before the next attempt
}

// withdraw says that nothing is served.
func (r *rollout) withdraw() {
	r.served = api.VersionInfo{}
	r.board.update(func(b *board) { b.served, b.path = nil, "" })
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

// switchTo serves the state in sl as version v from now on, unless the node was told meanwhile to stay away from it:
// errReplan. What comes after that sees v served. The note comes before the link: after a crash in between,
// a restart goes forward to v and never back.
func (r *rollout) switchTo(sl slot, v api.VersionInfo) error {
	r.noting.Lock()
	defer r.noting.Unlock()
	if g, _, _ := r.look(); !g.welcomes(versionOf(v), versionOf(r.served)) {
		return errReplan
	}
	if r.startsHere(sl) {
		if err := r.noteConfirmed(rootedIn(v)); err != nil {
			return err
		}
	}
	if err := servedNote.save(r.dir, v); err != nil {
		return err
	}
	return r.show(sl, v)
}

// show serves what is served already, as after a restart; nothing is written that need not be.
func (r *rollout) show(sl slot, v api.VersionInfo) error {
	if err := r.slots.point(sl); err != nil {
		return err
	}
	r.served, r.past = v, true
	r.board.note("sidecars", r.slots.misfit(sl))
	r.board.serve(v, sl.dir)
	return nil
}
