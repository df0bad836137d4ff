package node

import (
	"fmt"
	"path/filepath"
)

// point lets the link current lead to a slot, which is left alone from then on. A link that could be made but not synced
// counts: engines follow it already, and a start goes by what is noted and not by the link.
func (s *slots) point(sl slot) error {
	if !s.leadsTo(sl) {
		err := s.dir.Symlink(s.target(sl), "current")
		switch {
		case err == nil:
		case s.leadsTo(sl):
			s.log.Warn().Err(err).Str("slot", sl.name).Msg("the link current is not on the disk for certain")
		default:
			return fmt.Errorf("switch current to slot %s: %w", sl.name, err)
		}
	}
	s.show(sl)
	s.hold(sl)
	return nil
}

// unpoint removes the link current, so that nobody loads what is not known to be whole.
func (s *slots) unpoint() error {
	s.show(slot{})
	return s.dir.Remove("current")
}

// unpointFrom removes the link current where it leads to a slot that nobody vouches for any more, as after a loss of
// power: an engine that starts meanwhile must not load what may be torn.
func (s *slots) unpointFrom(sl slot) error {
	if sl.name == "base" || !s.isServed(sl) {
		return nil
	}
	return s.unpoint()
}

func (s *slots) show(sl slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = sl
}

// target is where the link current leads for a slot.
func (s *slots) target(sl slot) string {
	if rel, err := filepath.Rel(s.dir.Path("."), sl.dir); err == nil && filepath.IsLocal(rel) {
		return rel // survives a move of the data directory
	}
	return sl.dir
}

// isServed tells whether the link current leads to a slot, or would if nobody had changed it.
func (s *slots) isServed(sl slot) bool {
	s.mu.Lock()
	shown := s.shown.dir != "" && s.shown.name == sl.name
	s.mu.Unlock()
	return shown || s.leadsTo(sl)
}

// leadsTo tells whether the link current leads to a slot.
func (s *slots) leadsTo(sl slot) bool {
	target, err := s.dir.Readlink("current")
	return err == nil && target == s.target(sl)
}
