package node

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/dustin/go-humanize"
	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

// A host short of memory has one slot. It is changed where it lies, frame by frame, while current leads nowhere. Before a
// frame is overwritten two things are in files: the code that leads back from it (the stream back), and the frame as it is
// going to be (inflight). So whatever cuts a change short, as long as the machine stays up every frame is wholly old or
// wholly new again at the next start. Old ones are taken on by the edge itself, whose chunks are here; when that cannot
// be, as when what the edge led to is not wanted any more, new ones are taken back by the stream.
//
// Nothing of that waits for the disk, frame by frame, or an update would take many times as long. A loss of power thus may
// leave mixtures in the slot, and holes in the stream. Every block is known by its digest: those that cannot be finished,
// or undone, are made from the base or from an anchor, by what is here or on offer. Where there is neither, and nobody
// to ask, nothing is served until there is: never a mixture.

// keepOne gives one of the two slots up: the one that is served, or else holds something, stays.
func (s *slots) keepOne() error {
	keep := s.own[0]
	for _, sl := range s.own {
		if !sl.root.IsZero() && (keep.root.IsZero() || s.isServed(sl)) {
			keep = sl
		}
	}
	s.only = keep.name
	name := s.otherName(keep.name)
	s.set(name, delta.Root{})
	for _, path := range []string{"slots/" + name, markerFile(name), digestsFile(name)} {
		if err := s.dir.FS().RemoveAll(s.place.Path(path)); err != nil {
			return fmt.Errorf("give up slot %s: %w", name, s.explain(err))
		}
	}
	delete(s.harmed, name)
	return nil
}

// checkRoom tells that what lies beside a change in place would not fit the disk: then the slot is not touched, and what it
// holds stays served.
func (s *slots) checkRoom(path []*delta.Manifest) error {
	free, err := s.dir.Free()
	if err != nil {
		return nil //nolint:nilerr // the write that fails tells
	}
	var need uint64
	for _, m := range path {
		if !m.Base.IsZero() {
			need = max(need, m.Coded+min(m.Dense, uint64(runtime.GOMAXPROCS(0))*placeSize)) // the stream back, and frames in hand
		}
	}
	if need <= free {
		return nil
	}
	return fmt.Errorf("the change in place takes up to %s beside the slot, and %s has %s free: %s",
		humanize.Bytes(need), s.dir.Path("."), humanize.Bytes(free), s.dir.MakeRoom())
}

func (s *slots) otherName(name string) string {
	if name == slotNames[0] {
		return slotNames[1]
	}
	return slotNames[0]
}

// finish takes a slot whose change was cut short on to what it was to become.
func finish(ctx context.Context, s *slots, lib library, edges []mesh.Edge, sl slot, h harm) error {
	ctx, cancel := context.WithTimeout(ctx, mendFor)
	defer cancel()
	defer s.work()()
	p, err := s.openPatches(sl)
	if err != nil {
		return err
	}
	defer p.Close()
	i := slices.IndexFunc(edges, func(e mesh.Edge) bool { return e.Base == h.from && e.Target == h.root })
	if i < 0 {
		return fmt.Errorf("the edge that was being applied is no longer on offer")
	}
	rungs, err := lib.rungs(ctx, edges[i:i+1], p.Schema(), nil)
	if err != nil {
		return err
	}
	want, _ := rungs[0].Outboard.Digests()
	frames, err := createInflight(s.dir, h.from, h.root)
	if err != nil {
		return err
	}
	defer frames.close()
	left, err := delta.Salvage(ctx, p.Schema(), want.Diff(h.holds), p, rungs, p, frames.keep)
	if err != nil {
		return s.explain(err)
	}
	if len(left) > 0 {
		if err := rebuild(ctx, s, lib, edges, p, h.root, left); err != nil {
			return err
		}
	}
	return s.regain(ctx, sl, p, h.root)
}

// undo takes a slot whose change was cut short back to what it held before.
func undo(ctx context.Context, s *slots, lib library, edges []mesh.Edge, sl slot, h harm) error {
	defer s.work()()
	p, err := s.openPatches(sl)
	if err != nil {
		return err
	}
	defer p.Close()
	was := s.promised(sl.name, p.Schema(), h.from)
	if was == nil {
		return fmt.Errorf("the digests of %s, which the slot held, are gone", h.from.Short())
	}
	back, err := s.dir.OpenSpool(backFile, false)
	if err != nil {
		return err
	}
	defer back.Close()
	frames, err := createInflight(s.dir, h.from, h.root)
	if err != nil {
		return err
	}
	defer frames.close()
	left, err := delta.Undo(ctx, back, p, h.holds, was, p, frames.keep)
	if err != nil {
		return s.explain(err)
	}
	if len(left) > 0 {
		ctx, cancel := context.WithTimeout(ctx, mendFor)
		defer cancel()
		if err := rebuild(ctx, s, lib, edges, p, h.from, left); err != nil {
			return err
		}
	}
	return s.regain(ctx, sl, p, h.from)
}

// rebuild makes blocks of a slot from another state that is here, or from nothing.
func rebuild(ctx context.Context, s *slots, lib library, edges []mesh.Edge, p *patches, root delta.Root, blocks []int) error {
	path, err := Plan(s.held(), root, edges)
	if err != nil {
		return err
	}
	if len(path) == 0 {
		return fmt.Errorf("another slot holds %s", root.Short())
	}
	_, base, err := s.open(ctx, path[0].Base)
	if err != nil {
		return err
	}
	var from delta.State
	if base != nil {
		defer base.Close()
		from = base
	}
	rungs, err := lib.rungs(ctx, path, p.Schema(), blocks)
	if err != nil {
		return err
	}
	return s.explain(delta.Rebuild(ctx, p.Schema(), blocks, from, rungs, p))
}

// block gets a block of an edge.
func (l library) block(ctx context.Context) func(id cid.Cid) ([]byte, error) {
	return func(id cid.Cid) ([]byte, error) { return l.mesh.Block(ctx, id, delta.MaxBlock) }
}
