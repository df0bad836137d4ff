package node

import (
	"context"
	"fmt"

	"github.com/sparsecast/sparsecast/node/api"
)

// mendAll sees to the damage that was found in copies of published states: the newest is what the next version is
// coded against. It is repaired, or else made anew from the base and what is on offer.
func (t *trainer) mendAll(ctx context.Context) {
	if t.publishing.enter(ctx) != nil {
		return
	}
	defer t.publishing.leave()
	t.slots.glance(ctx)
	for {
		sl, h, ok := t.slots.nextHarm()
		if !ok || ctx.Err() != nil {
			return
		}
		mended := t.mendOne(ctx, sl, h)
		t.slots.seen(sl)
		noteBase(t.board, sl)
		t.board.update(func(b *board) { b.check.count(h, mended) })
	}
}

func (t *trainer) mendOne(ctx context.Context, sl slot, h harm) bool {
	head, catalogue, _, _ := t.mesh.Latest()
	if sl.name == "base" || h.root != head.Root {
		return false // the next version takes its place
	}
	if len(h.blocks) > 0 {
		err := mend(ctx, t.slots, t.library, offered(head, catalogue), sl, h)
		if err == nil {
			t.log.Info().Str("slot", sl.name).Int("blocks", len(h.blocks)).Msg("damaged blocks repaired")
			return true
		}
		t.log.Warn().Err(err).Str("slot", sl.name).Msg("damaged blocks could not be repaired, making the version anew")
	}
	t.slots.hold(slot{}) // nothing in it is worth keeping
	if err := t.restore(ctx, head); err != nil {
		t.log.Warn().Err(err).Msg("the version published last is not on this disk")
	}
	t.show(head, nil)
	return false
}

// check is part of checker.
func (t *trainer) check(ctx context.Context) (api.CheckResult, error) {
	select {
	case <-t.prepared:
	case <-ctx.Done():
		return api.CheckResult{}, fmt.Errorf("nothing checked: the node is still starting: %w", ctx.Err())
	}
	list, err := t.slots.check(ctx, func() func(uint64) { return nil })
	if err != nil {
		return api.CheckResult{}, err
	}
	t.mendAll(ctx)
	return t.slots.results(list, t.board), ctx.Err()
}
