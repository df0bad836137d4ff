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
	if s.only != "" {
		if err := s.unpointFrom(to); err != nil {
			return err
		}
		if from.name == to.name {
			old.Close()
			return s.changeInPlace(ctx, lib, schema, to, path)
		}
	}
	if err := s.prepare(to, schema, from.root); err != nil {
		return err
	}
	if err := s.dress(to, from, schema, path[0], lib.chunks(path[0])); err != nil {
		return fmt.Errorf("slot %s: files beside the weights: %w", to.name, s.explain(err))
	}
	draft, err := s.create(to, schema)
	if err != nil {
		return err
	}
	defer draft.Abort() // nothing to do after a commit
	defer s.work()()
	var result delta.Decoded
	for _, m := range path {
		if result, err = delta.ApplyEdge(ctx, m, lib.chunks(m), schema, state, draft, delta.DecodeOptions{}); err != nil {
			return errors.Join(err, s.examine(ctx, from))
		}
		state = draft // the next delta is applied in place, where nobody reads yet
	}
	return s.commit(to, draft, result.Root, result.Digests)
}

// open opens a slot that holds root, or at least did when it was hashed and has not been touched since. Both results
// are zero for the zero root, where anchors start.
func (s *slots) open(ctx context.Context, root delta.Root) (slot, *states, error) {
	if root.IsZero() {
		return slot{}, nil, nil
	}
	for {
		sl, ok := s.find(root)
		if !ok {
			return slot{}, nil, fmt.Errorf("state %s: %w", root.Short(), errSlotLost)
		}
		if err := s.recheck(ctx, sl); err == nil {
			c, err := s.read(sl)
			return sl, c, err
		} else if !errors.Is(err, errSlotLost) {
			return slot{}, nil, err
		}
	}
}

// recheck examines a slot whose files were touched since its root was found.
func (s *slots) recheck(ctx context.Context, sl slot) error {
	c, err := s.read(sl)
	if err != nil {
		return s.examine(ctx, sl)
	}
	root, ok := s.believe(sl.name, c)
	c.Close()
	if ok && root == sl.root {
		s.couldRead(sl)
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
	f, err := s.take(ctx, sl)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && s.passes(sl, err) {
		return fmt.Errorf("slot %s: %w", sl.name, err)
	}
	h, ok := s.compare(sl.name, sl.root, f)
	if err == nil && ok {
		s.couldRead(sl)
		return nil
	}
	s.report(sl, h, err)
	return fmt.Errorf("slot %s: %w", sl.name, errSlotLost)
}
