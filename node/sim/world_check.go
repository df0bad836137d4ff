package sim

import (
	"context"

	"github.com/sparsecast/sparsecast/node/api"
)

// check has a user let the node look at its slots, and holds the answer against what is there, unless something goes on
// that changes them.
func (b *box) check() {
	n := b.alive()
	if n == nil {
		return
	}
	before := n.Status(b.w.ctx)
	ctx, cancel := context.WithTimeout(b.w.ctx, pinWithin)
	defer cancel()
	res, err := n.Check(ctx)
	b.w.note("%s: check: %+v, %v", b.name(), res, err)
	after := n.Status(b.w.ctx)
	if err != nil || before.State != api.StateReady || after.State != api.StateReady || textOf(before.Latest) != textOf(after.Latest) {
		return
	}
	for _, c := range res.Slots {
		if _, _, known := b.w.oracle.span(c.Root); !known {
			continue // it was damaged, or half-written, before a start, which took it for what it is: it leads nowhere
		}
		got, err := b.engine(c.Path)
		whole := err == nil && b.w.oracle.holds(c.Root, got)
		switch {
		case !whole && (!c.Damaged || c.Repaired):
			b.w.violate(findsHarm, "%s: slot %s does not hold %s: sum %x, error %v; the check says %+v", b.name(), c.Slot, c.Root.Short(), got[:6], err, c)
		case c.Damaged && !b.harmed.Load() && !b.troubled.Load():
			b.w.violate(findsHarm, "%s: slot %s is said to be damaged, and nothing was done to it", b.name(), c.Slot)
		}
	}
}
