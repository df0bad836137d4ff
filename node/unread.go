package node

import "github.com/sparsecast/sparsecast/node/files"

// A disk that fails to read for a while has lost nothing: a copy that an engine reads must not be taken away for that. What
// cannot be read again and again, which takes some minutes by then, counts as damaged, and is made anew.
const unreadable = 12 // attempts in a row

// passes tells whether to try again, later, to read a slot.
func (s *slots) passes(sl slot, err error) bool {
	if !files.MayPass(err) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread[sl.name]++
	return s.unread[sl.name] < unreadable
}

// couldRead says that a slot was read.
func (s *slots) couldRead(sl slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unread, sl.name)
}
