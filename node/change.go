package node

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/node/files"
)

// backFile names the stream back of a change in place.
const backFile = "way_back"

// change is a slot being taken along one edge where it lies. Beside it lie, until it is whole, the stream that leads back
// as far as it was written and the frames in hand.
type change struct {
	frames *inflight
	back   *files.Spool // nil when no way back is kept
}

// begin prepares a change. What is left of another one goes.
func (s *slots) beginChange(from, to delta.Root) (*change, error) {
	frames, err := createInflight(s.dir, from, to)
	if err != nil {
		return nil, err
	}
	c := &change{frames: frames}
	if s.ways == nil {
		return c, s.dir.Remove(backFile)
	}
	if c.back, err = s.dir.OpenSpool(backFile, true); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *change) options() delta.DecodeOptions {
	opt := delta.DecodeOptions{Keep: c.frames.keep}
	if c.back != nil {
		opt.Reverse = c.back
	}
	return opt
}

func (c *change) close() error {
	if c.back != nil {
		c.back.Close()
	}
	return c.frames.close()
}

// endChange removes what lies beside a change, when it is whole or given up.
func (s *slots) endChange() {
	if err := errors.Join(s.dir.Remove(backFile), s.dir.Remove(inflightFile)); err != nil {
		s.log.Warn().Err(err).Msg("what lay beside a change in place could not be removed")
	}
}

// isTorn tells whether a change in place was cut short that is not seen to yet.
func (s *slots) isTorn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.harmed {
		if !h.from.IsZero() {
			return true
		}
	}
	return false
}

// changeInPlace takes the only slot along a path. When that fails the slot is torn, which is reported as harm.
func (s *slots) changeInPlace(ctx context.Context, lib library, schema *delta.Schema, sl slot, path []*delta.Manifest) error {
	defer s.work()()
	p, err := s.openPatches(sl)
	if err != nil {
		return err
	}
	defer p.Close()
	for _, m := range path {
		if err := s.changeAlong(ctx, lib, schema, sl, p, m); err != nil {
			return err
		}
	}
	return nil
}

func (s *slots) changeAlong(ctx context.Context, lib library, schema *delta.Schema, sl slot, p *patches, m *delta.Manifest) error {
	c, err := s.beginChange(m.Base, m.Target)
	if err != nil {
		return fmt.Errorf("prepare to change slot %s: %w", sl.name, err)
	}
	defer c.close()
	if err := s.markTorn(sl.name, m, p); err != nil {
		return fmt.Errorf("slot %s: %w", sl.name, s.explain(err))
	}
	s.set(sl.name, delta.Root{})
	done, err := delta.ApplyEdge(ctx, m, lib.chunks(m), schema, p, p, c.options())
	if err != nil {
		return errors.Join(s.explain(err), s.torn(ctx, sl, m, p, c))
	}
	if done.Reverse != nil {
		s.keepWay(ctx, c.back, schema, *done.Reverse)
	}
	if err := s.mark(sl.name, done.Root, p); err != nil {
		return errors.Join(s.explain(err), s.torn(ctx, sl, m, p, c))
	}
	s.keepDigests(sl.name, done.Digests, schema)
	s.set(sl.name, done.Root)
	s.endChange()
	return nil
}

// keepWay keeps the way back. Without it the new version is as good.
func (s *slots) keepWay(ctx context.Context, stream io.ReadSeeker, schema *delta.Schema, sum delta.Summary) {
	if sum.Base == sum.Target {
		return
	}
	if err := s.ways.add(ctx, stream, schema, sum); err != nil {
		s.log.Warn().Err(err).Msg("the way back to the version before is not kept: going back takes what is on offer")
	}
}

// markTorn notes what a slot is changed to before it is.
func (s *slots) markTorn(slot string, m *delta.Manifest, p *patches) error {
	b, err := marshalChecked(marker{Root: m.Target, From: m.Base, Schema: p.odd()})
	if err != nil {
		return err
	}
	return s.place.WriteFile(markerFile(slot), b)
}

// torn finds out how far a change came, and reports it.
func (s *slots) torn(ctx context.Context, sl slot, m *delta.Manifest, p *patches, c *change) error {
	if err := c.frames.replay(p.Schema(), p); err != nil {
		s.log.Warn().Err(err).Str("slot", sl.name).Msg("half-written blocks are left in the slot")
	}
	digests, err := delta.DigestsOf(ctx, p, nil)
	if err != nil {
		return err // the next start finds out
	}
	s.report(sl, harm{root: m.Target, from: m.Base, holds: digests}, nil)
	return nil
}
