package node

import (
	"context"
	"time"

	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/node/api"
)

// checkEvery is how long after the begin of a background check the next one begins.
const checkEvery = time.Hour

// checkInfo is the part of the board about what was read to find damage.
type checkInfo struct {
	last              time.Time // when all slots had been read
	damaged, repaired int       // blocks, since the start
}

func (c *checkInfo) count(h harm, mended bool) {
	c.damaged += len(h.blocks)
	if mended {
		c.repaired += len(h.blocks)
	}
}

func (c *checkInfo) fill(s *api.Status) {
	s.BlocksDamaged, s.BlocksRepaired = uint64(c.damaged), uint64(c.repaired)
	if !c.last.IsZero() {
		s.CheckedAt = c.last.UnixMilli()
	}
}

// scrubber reads the slots and the base in the background, so that bits that flip are found before somebody loads them.
type scrubber struct {
	slots *slots
	pace  uint64 // bytes a second, 0 for never
	nudge func() // called when damage was found
	board *board
	log   zerolog.Logger
}

func (s scrubber) run(ctx context.Context) {
	if s.pace == 0 {
		return
	}
	next := time.NewTimer(checkEvery) // at the start everything was just read, or is believed for a reason
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		begun := time.Now()
		if _, err := s.slots.check(ctx, func() func(uint64) { return s.slow(ctx) }); err == nil {
			s.board.update(func(b *board) { b.check.last = time.Now() })
		}
		if s.slots.isHarmed() {
			s.nudge()
		}
		next.Reset(max(0, checkEvery-time.Since(begun)))
	}
}

// slow returns a function that lets a check take its time, and wait while versions are brought up.
func (s scrubber) slow(ctx context.Context) func(uint64) {
	var last uint64
	pause := func(d time.Duration) bool {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-ctx.Done():
			return false
		case <-t.C:
			return true
		}
	}
	return func(done uint64) {
		for s.slots.atWork() && pause(time.Second) {
		}
		pause(time.Duration(float64(done-last) / float64(s.pace) * float64(time.Second)))
		last = done
	}
}

// check reads all slots and the base and reports damage. What changes while it is read is left out. Progress returns
// what hears how much of a slot was read.
func (s *slots) check(ctx context.Context, progress func() func(uint64)) (list []api.CheckedSlot, err error) {
	all, changes := s.all()
	for i, sl := range all {
		c, err := s.read(sl)
		var f survey
		if err == nil {
			f, err = readAll(ctx, c, progress())
			c.Close()
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !s.unchanged(sl, changes[i]) {
			continue
		}
		res := api.CheckedSlot{Slot: sl.name, Path: sl.dir, Root: sl.root}
		if err != nil && s.passes(sl, err) {
			continue
		}
		if h, ok := s.compare(sl.name, sl.root, f); err != nil || !ok {
			if !s.reportSince(sl, changes[i], h, err) {
				continue
			}
			res.Damaged, res.Blocks = true, len(h.blocks)
		}
		if err == nil {
			s.couldRead(sl)
		}
		list = append(list, res)
	}
	return list, nil
}

// results completes what a check found by what became of it since, and notes that there was one. A slot that was whole and
// has been given another state since, in place of one that was damaged, is left out.
func (s *slots) results(list []api.CheckedSlot, b *board) (res api.CheckResult) {
	for _, c := range list {
		there := s.holds(c.Slot, c.Root)
		if c.Repaired = c.Damaged && there; c.Damaged || there {
			res.Slots = append(res.Slots, c)
		}
	}
	b.update(func(b *board) { b.check.last = time.Now() })
	return res
}

// noteBase tells when the base checkpoint was found to be damaged. It is somebody's file, which is never written.
func noteBase(b *board, sl slot) {
	if sl.name == "base" {
		b.note("base", "the base checkpoint "+sl.dir+" is not what it was, and is not used any more: restore it, then restart the node")
	}
}

// all returns the slots that hold something and the base, each with how often it was given another state.
func (s *slots) all() (list []slot, changes []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sl := range append(s.own[:], s.base) {
		if !sl.root.IsZero() {
			list, changes = append(list, sl), append(changes, s.changes[sl.name])
		}
	}
	return list, changes
}

// unchanged tells whether a slot still holds what it held when all said so.
func (s *slots) unchanged(sl slot, changes int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes[sl.name] == changes
}
