package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/sparsecast/sparsecast/delta"
)

func (s *slots) openBase(ctx context.Context, from paths) (err error) {
	s.base = slot{name: "base", from: from}
	if s.base.dir, err = s.baseDir(from); err != nil {
		return err
	}
	if s.base.root, err = s.identify(ctx, s.base); err != nil {
		return fmt.Errorf("base checkpoint: %w", err)
	}
	return nil
}

// identify returns the root of what lies in the slot, zero when nothing does.
func (s *slots) identify(ctx context.Context, sl slot) (delta.Root, error) {
	if !s.markedInThisBoot(sl.name) {
		if err := s.unpointFrom(sl); err != nil {
			return delta.Root{}, err
		}
	}
	if sl.name != "base" {
		if err := s.replay(sl); err != nil {
			s.log.Warn().Err(err).Str("slot", sl.name).Msg("half-written blocks are left in the slot")
		}
	}
	c, err := s.read(sl)
	if errors.Is(err, fs.ErrNotExist) && sl.name != "base" {
		return delta.Root{}, nil
	}
	if err != nil {
		return delta.Root{}, err
	}
	root, ok := s.believe(sl.name, c)
	c.Close()
	if ok {
		return root, nil
	}
	var m marker
	if sl.name != "base" { // which may be another one by now
		m, _ = s.readMarker(sl.name)
		sl.root = m.Root // what it held before, and may hold still but for some blocks
	}
	f, err := s.take(ctx, sl)
	if err == nil && !m.From.IsZero() && f.root == m.From {
		return f.root, s.unchangedYet(sl, f)
	}
	h, ok := s.compare(sl.name, sl.root, f)
	if h.from, h.holds = m.From, f.digests; err == nil && !ok && (len(h.blocks) > 0 || !h.from.IsZero()) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.harmed[sl.name] = h
	}
	return f.root, err
}

// take reads a slot whole and marks it with what it holds.
func (s *slots) take(ctx context.Context, sl slot) (survey, error) {
	c, err := s.read(sl)
	if err != nil {
		return survey{}, err
	}
	defer c.Close()
	f, err := readAll(ctx, c, s.progress(sl, c.Schema().Bytes()))
	if err != nil {
		return survey{}, err
	}
	if !sl.root.IsZero() && sl.root != f.root {
		return f, nil // what is noted beside the slot tells what is damaged
	}
	s.keepDigests(sl.name, f.digests, f.schema)
	if err := s.mark(sl.name, f.root, c); err != nil {
		s.log.Warn().Err(err).Str("slot", sl.name).Msg("slot will be read again at the next start")
	}
	return f, nil
}

// progress returns a function that logs how far the reading of a slot is, at its begin and now and then.
func (s *slots) progress(sl slot, total uint64) func(uint64) {
	var told time.Time
	return func(done uint64) {
		if time.Since(told) < 10*time.Second {
			return
		}
		told = time.Now()
		s.log.Info().Str("slot", sl.name).Str("path", sl.dir).Uint64("bytes", done).Uint64("of", total).Msg("hashing weights")
	}
}
