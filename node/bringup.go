package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/sparsecast/sparsecast/delta"
)

// errSlotLost says that a slot does not hold what it was believed to. It has been disowned: plan again.
var errSlotLost = errors.New("a slot does not hold what it did")

// bringUp applies the edges of a path, one after the other, into the idle slot. All their blocks are in the store.
func bringUp(ctx context.Context, s *slots, lib library, path []*delta.Manifest) error {
	schema, err := lib.schema(ctx, path[0].Schema)
	if err != nil {
		return err
	}
	from, old, err := s.open(ctx, path[0].Base)
	if err != nil {
		return err
	}
	var state delta.State
	if old != nil {
		defer old.Close()
		state = old
	}
	to := s.idle()
	draft, err := s.begin(to, schema, from.root)
	if err != nil {
		return err
	}
	defer draft.Abort() // nothing to do after a commit
	for _, m := range path {
		if err := delta.ApplyEdge(ctx, m, lib.chunks(m), schema, state, draft, nil); err != nil {
			return errors.Join(err, s.examine(ctx, from))
		}
		state = draft // the next delta is applied in place, where nobody reads yet
	}
	return s.commit(to, draft, path[len(path)-1].Target)
}

// open opens a slot that holds root, or at least did when it was hashed and has not been touched since. Both results
// are zero for the zero root, where anchors start.
func (s *slots) open(ctx context.Context, root delta.Root) (slot, *delta.Checkpoint, error) {
	if root.IsZero() {
		return slot{}, nil, nil
	}
	for {
		sl, ok := s.find(root)
		if !ok {
			return slot{}, nil, fmt.Errorf("state %s: %w", root.Short(), errSlotLost)
		}
		if err := s.recheck(ctx, sl); err == nil {
			c, err := delta.OpenCheckpoint(sl.path)
			return sl, c, err
		} else if !errors.Is(err, errSlotLost) {
			return slot{}, nil, err
		}
	}
}

// recheck examines a slot whose files were touched since its root was found.
func (s *slots) recheck(ctx context.Context, sl slot) error {
	c, err := delta.OpenCheckpoint(sl.path)
	if err != nil {
		return s.examine(ctx, sl)
	}
	root, ok := s.believe(sl.name, c)
	c.Close()
	if ok && root == sl.root {
		return nil
	}
	return s.examine(ctx, sl)
}

// examine reads a slot whole and disowns it when it does not hold what it is believed to, with errSlotLost. It tells
// damage on this host from an error of another kind.
func (s *slots) examine(ctx context.Context, sl slot) error {
	if sl.root.IsZero() {
		return nil
	}
	root, err := s.hash(ctx, sl)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && root == sl.root {
		return nil
	}
	s.disown(sl)
	s.log.Warn().Err(err).Str("slot", sl.name).Str("was", sl.root.Short()).Str("is", root.Short()).Msg("slot is damaged, not used again")
	return fmt.Errorf("slot %s: %w", sl.name, errSlotLost)
}
