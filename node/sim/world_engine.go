package sim

import (
	"context"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/node/api"
)

// engine is what a user has loaded who confirms by hand: the slot must stay as it is until something newer is confirmed.
type engine struct {
	dir  string // empty for nothing
	root delta.Root
}

// confirm has the user load what is served and say so, where nobody has yet.
func (b *box) confirm() {
	n := b.alive()
	if n == nil {
		return
	}
	s := n.Status(b.w.ctx)
	if s.Unconfirmed == nil || s.Served == nil {
		return
	}
	ctx, cancel := context.WithTimeout(b.w.ctx, pinWithin)
	defer cancel()
	_, err := n.Confirm(ctx, api.VersionRequest{Number: &s.Unconfirmed.Number, Epoch: &s.Unconfirmed.Epoch})
	b.w.note("%s: confirm %d of %d: %v", b.name(), s.Unconfirmed.Number, s.Unconfirmed.Epoch, err)
	if err == nil {
		b.loaded = engine{s.Path, s.Served.Root}
	}
}

// lookAtLoaded checks that nothing has written where an engine reads. What the disk does to it nobody can help. Where there
// is one slot the engine has the weights in its memory when that is confirmed.
func (b *box) lookAtLoaded() {
	if b.plan.OneSlot || b.loaded.dir == "" || b.unsure.Load() || b.harmed.Load() || b.troubled.Load() {
		return
	}
	got, err := b.engine(b.loaded.dir)
	if err != nil || !b.w.oracle.holds(b.loaded.root, got) {
		b.w.violate(waitsForConfirm, "%s: %s held %s when that was confirmed; sum %x, error %v",
			b.name(), b.loaded.dir, b.loaded.root.Short(), got[:6], err)
	}
}
