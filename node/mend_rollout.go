package node

import (
	"context"
	"fmt"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// mendAll sees to the damage that was found. What cannot be repaired is brought up anew when it is wanted: a slot that
// was served is not any more, since nobody is to load it.
func (r *rollout) mendAll(ctx context.Context) error {
	r.slots.glance(ctx)
	for {
		sl, h, ok := r.slots.nextHarm()
		if !ok {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return r.slots.repoint()
		}
		served := r.slots.isServed(sl)
		if served {
			if err := r.slots.unpoint(); err != nil {
				return err
			}
		}
		mended := r.mendOne(ctx, sl, h)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var err error
		switch {
		case served && mended && h.root == r.served.Root:
			if err = r.show(sl, r.served); err != nil {
				r.withdraw()
			}
		case served && h.root == r.served.Root:
			r.unserve()
		}
		r.slots.seen(sl)
		noteBase(r.board, sl)
		r.board.update(func(b *board) { b.check.count(h, mended) })
		if err != nil {
			return err
		}
	}
}

// mendOne repairs a slot if what it should hold is still wanted, and tells whether it holds that again.
func (r *rollout) mendOne(ctx context.Context, sl slot, h harm) bool {
	g, head, catalogue := r.look()
	_, elsewhere := r.slots.find(h.root)
	if !h.from.IsZero() {
		return r.settleChange(ctx, g, r.edges(head, catalogue), sl, h)
	}
	if sl.name == "base" || len(h.blocks) == 0 || elsewhere || h.root != g.to.Root && h.root != r.served.Root {
		return false
	}
	if err := mend(ctx, r.slots, r.library, r.edges(head, catalogue), sl, h); err != nil {
		r.log.Warn().Err(err).Str("slot", sl.name).Msg("damaged blocks could not be repaired, bringing the version up anew")
		return false
	}
	r.log.Info().Str("slot", sl.name).Str("root", h.root.Short()).Int("blocks", len(h.blocks)).Msg("damaged blocks repaired")
	return true
}

// settleChange sees to an update in place that was cut short. It is finished, unless what the slot held before is wanted, and
// undone when that cannot be.
func (r *rollout) settleChange(ctx context.Context, g goal, edges []mesh.Edge, sl slot, h harm) bool {
	settled := h.from != g.to.Root && r.finish(ctx, g, edges, sl, h) || ctx.Err() == nil && r.undo(ctx, edges, sl, h) ||
		h.from == g.to.Root && r.finish(ctx, g, edges, sl, h)
	if ctx.Err() == nil {
		r.slots.endChange()
	}
	return settled
}

// undo takes an update in place back that was cut short, and serves again what was served before it.
func (r *rollout) undo(ctx context.Context, edges []mesh.Edge, sl slot, h harm) bool {
	if err := undo(ctx, r.slots, r.library, edges, sl, h); err != nil {
		r.log.Warn().Err(err).Str("slot", sl.name).Msg("an update in place that was cut short could not be undone")
		return false
	}
	r.log.Info().Str("slot", sl.name).Str("root", h.from.Short()).Msg("undid an update in place that was cut short")
	v, ok, err := servedNote.load(r.dir)
	if sl, found := r.slots.find(h.from); err == nil && ok && found && v.Root == h.from && r.served.Root.IsZero() && r.plausible(v) {
		err = r.show(sl, v)
	}
	if err != nil {
		r.log.Warn().Err(err).Msg("what was served before is whole again, but cannot be served")
	}
	return true
}

// finish takes an update in place on that was cut short, when what it leads to is of use.
func (r *rollout) finish(ctx context.Context, g goal, edges []mesh.Edge, sl slot, h harm) bool {
	if _, err := Plan([]delta.Root{h.root}, g.to.Root, edges); err != nil {
		return false
	}
	if err := finish(ctx, r.slots, r.library, edges, sl, h); err != nil {
		r.log.Warn().Err(err).Str("slot", sl.name).Msg("an update in place that was cut short could not be finished")
		return false
	}
	r.log.Info().Str("slot", sl.name).Str("root", h.root.Short()).Msg("finished an update in place that was cut short")
	return true
}

// check is part of checker.
func (r *rollout) check(ctx context.Context) (api.CheckResult, error) {
	select {
	case <-r.opened:
	case <-ctx.Done():
		return api.CheckResult{}, fmt.Errorf("nothing checked: the node is still starting: %w", ctx.Err())
	}
	list, err := r.slots.check(ctx, func() func(uint64) { return nil })
	if err != nil {
		return api.CheckResult{}, err
	}
	r.nudge()
	err = r.board.waitFor(ctx, func(*board) bool { return !r.slots.isHarmed() })
	return r.slots.results(list, r.board), err
}

// unserve says that what was served is lost. It never leads back: what comes next is what should be served by now.
func (r *rollout) unserve() {
	r.log.Error().Uint64("number", r.served.Number).Msg("the served version is damaged and could not be repaired block by block: nothing is served until it is brought up anew")
	r.withdraw()
}
