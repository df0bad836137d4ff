package node

import "github.com/sparsecast/sparsecast/delta"

// report notes that a slot does not hold what it should. It is not used again before it was seen to.
func (s *slots) report(sl slot, h harm, cause error) {
	s.mu.Lock()
	changes := s.changes[sl.name]
	s.mu.Unlock()
	s.reportSince(sl, changes, h, cause)
}

// reportSince is report for whoever looked at the slot when it had been given a state as often as changes says. It notes
// nothing, and returns false, when it was given another one since.
func (s *slots) reportSince(sl slot, changes int, h harm, cause error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes[sl.name] != changes {
		return false
	}
	s.log.Warn().Err(cause).Str("slot", sl.name).Str("root", sl.root.Short()).Int("blocks", len(h.blocks)).Msg("slot is damaged")
	s.setLocked(sl.name, delta.Root{})
	s.harmed[sl.name] = h
	return true
}

// nextHarm returns damage that is not seen to yet.
func (s *slots) nextHarm() (sl slot, h harm, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sl := range append(s.own[:], s.base) {
		if h, ok := s.harmed[sl.name]; ok {
			return sl, h, true
		}
	}
	return slot{}, harm{}, false
}

// isHarmed tells whether there is damage that is not seen to yet.
func (s *slots) isHarmed() bool {
	_, _, ok := s.nextHarm()
	return ok
}

// seen says that damage was seen to. Other damage may have been found meanwhile.
func (s *slots) seen(sl slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.harmed, sl.name)
}
