package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/sparsecast/sparsecast/delta"
)

// bringUp applies the edges of a path, one after the other, into the slot that does not hold the served root. All their
// blocks are in the store.
func bringUp(ctx context.Context, s *slots, lib library, served delta.Root, path []*delta.Manifest) error {
	schema, err := lib.schema(ctx, path[0].Schema)
	if err != nil {
		return err
	}
	from, old, err := s.open(path[0].Base)
	if err != nil {
		return err
	}
	if old != nil {
		defer old.Close()
	}
	to := s.idle(served)
	draft, err := s.begin(to, schema, from.root)
	if err != nil {
		return err
	}
	defer draft.Abort() // nothing to do after a commit
	var state delta.State
	if old != nil {
		state = old
	}
	for _, m := range path {
		if err := delta.ApplyEdge(ctx, m, lib.chunks(m), schema, state, draft, nil); err != nil {
			return s.blame(ctx, from, err)
		}
		state = draft // the next delta is applied in place, where nobody reads yet
	}
	return s.commit(to, draft, path[len(path)-1].Target)
}

// open opens the state that a path starts from; both results are zero for an anchor.
func (s *slots) open(root delta.Root) (slot, *delta.Checkpoint, error) {
	if root.IsZero() {
		return slot{}, nil, nil
	}
	sl, ok := s.find(root)
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
func (s *slots) blame(ctx context.Context, from slot, err error) error {
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
	s.disown(from)
	return fmt.Errorf("slot %s is damaged: its root is %s, not %s; it will not be used again: %w", from.name, root.Short(), from.root.Short(), err)
}
