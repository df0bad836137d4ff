package node

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

// mendFor bounds how long a repair may wait for blocks that only others have. A full bring-up may know another way.
const mendFor = time.Minute

// mend rebuilds the damaged blocks of a slot where they lie, from another state on this host and the edges that lead from
// there to what the slot should hold. Of those only the chunks are fetched in which the blocks are. Only wrong bytes are
// written over, with bytes that were checked before; the whole slot is read again before it is believed.
func mend(ctx context.Context, s *slots, lib library, edges []mesh.Edge, sl slot, h harm) error {
	ctx, cancel := context.WithTimeout(ctx, mendFor)
	defer cancel()
	defer s.work()()
	if err := s.unmark(sl.name); err != nil {
		return err
	}
	p, err := s.openPatches(sl)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := rebuild(ctx, s, lib, edges, p, h.root, h.blocks); err != nil {
		return err
	}
	return s.regain(ctx, sl, p, h.root)
}

// regain reads a slot that was changed in place, and believes it when it holds root.
func (s *slots) regain(ctx context.Context, sl slot, p *patches, root delta.Root) error {
	digests, err := delta.DigestsOf(ctx, p, nil)
	if err != nil {
		return err
	}
	if got, err := digests.Root(p.Schema()); err != nil || got != root {
		return fmt.Errorf("slot %s: root %s, want %s: %w", sl.name, got.Short(), root.Short(), errSlotLost)
	}
	s.keepDigests(sl.name, digests, p.Schema())
	if err := s.mark(sl.name, root, p); err != nil {
		return err
	}
	s.set(sl.name, root)
	return nil
}

// rungs gets what it takes to rebuild blocks along a path.
func (l library) rungs(ctx context.Context, path []mesh.Edge, schema *delta.Schema, blocks []int) (rungs []delta.Rung, err error) {
	for _, e := range path {
		m, err := l.describe(ctx, e, new(stage))
		if err != nil {
			return nil, err
		}
		o, err := delta.ReadOutboard(m, schema, groupsOf(schema, blocks), l.block(ctx))
		if err != nil {
			return nil, err
		}
		rungs = append(rungs, delta.Rung{Manifest: m, Outboard: o, Chunk: func(i int) ([]byte, error) {
			return l.mesh.Block(ctx, m.Chunks[i], delta.MaxChunk)
		}})
	}
	return rungs, nil
}

// groupsOf returns the groups of a schema that blocks are in; nil, which is all, for nil.
func groupsOf(schema *delta.Schema, blocks []int) (groups []int) {
	for g := range schema.Groups() {
		first, end := schema.GroupBlocks(g)
		if slices.ContainsFunc(blocks, func(b int) bool { return b >= first && b < end }) {
			groups = append(groups, g)
		}
	}
	return groups
}
