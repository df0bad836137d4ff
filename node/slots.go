package node

import (
	"context"
	"slices"
	"sync"

	"github.com/ipfs/go-cid"
	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/node/files"
)

// draftSuffix marks a checkpoint that is being written.
const draftSuffix = ".partial"

// slotNames are the two places for copies of a state: one is served while the other is brought up.
var slotNames = [2]string{"a", "b"}

// slot is one complete copy of a version on this host, of one state or several. The zero slot is none.
type slot struct {
	name string     // a, b or base
	from paths      // checkpoints of the base; the others know by their marker what is where
	dir  string     // directory that an engine can load, or that holds one such for each named state
	root delta.Root // what is in it; zero when nothing is
}

// slots are the copies of the state that this host has: the base checkpoint, which is only read, and two of our own.
// A slot is a cache. It is believed by its marker as long as neither its files nor the boot changed, and hashed again
// otherwise.
type slots struct {
	dir   *files.Dir // where the link current lies
	place *files.Dir // where the slots and what is noted about them lie: dir, or memory, or another disk
	cut   delta.Cutting
	log   zerolog.Logger

	dressed map[string]cid.Cid  // schemas of the states of the base that have files beside them, each as if it were alone
	misfits map[string][]string // by slot: states of other tensors than the base, beside which no files of their own came

	mu   sync.Mutex
	base slot    // without a root when no base is configured
	own  [2]slot // as slotNames
	only string  // the slot that is ours where there is only one, else empty
	busy string  // the slot that must be left alone: it is served, or holds the version published last

	harmed  map[string]harm // by slot: damage that is not seen to yet
	unread  map[string]int  // by slot: attempts to read it in a row that failed
	changes map[string]int  // by slot: how often it was given another state
	looks   map[string]appearance
	shown   slot // where the link current was pointed; without a directory where nowhere
	working int  // how many bring-ups and the like go on

	ways *ways // back from changes of the only slot; nil when none are kept
}

// openSlots finds out what the slots and the base hold; that may take a full read of each.
func openSlots(ctx context.Context, h home, log zerolog.Logger) (*slots, error) {
	s := &slots{
		dir: h.dir, place: h.place, cut: h.cut, log: log,
		dressed: make(map[string]cid.Cid), misfits: make(map[string][]string),
		harmed: make(map[string]harm), changes: make(map[string]int), looks: make(map[string]appearance), unread: make(map[string]int),
	}
	defer func() {
		if !s.isTorn() {
			s.endChange()
		}
	}()
	for i, name := range slotNames {
		s.own[i] = slot{name: name, dir: h.place.Path("slots/" + name)}
		if err := s.removeWeights(s.own[i], draftSuffix); err != nil { // space that nothing would ever free
			log.Warn().Err(err).Str("slot", name).Msg("what a crash left half-written could not be removed")
		}
		root, err := s.identify(ctx, s.own[i])
		if err != nil {
			log.Warn().Err(err).Str("slot", name).Msg("slot unusable, treated as empty")
		}
		s.own[i].root = root
	}
	if h.one {
		if err := s.keepOne(); err != nil {
			return nil, err
		}
	}
	if len(h.base) == 0 {
		return s, nil
	}
	err := s.openBase(ctx, h.base)
	if err == nil {
		err = s.copySidecars()
	}
	if err != nil && len(s.held()) == 0 && !s.isTorn() { // what is torn may become whole again without the base
		return nil, err
	}
	if err != nil {
		log.Warn().Err(err).Msg("going on without the base, from what the slots hold")
	}
	return s, nil
}

// held returns the roots that are here.
func (s *slots) held() []delta.Root {
	s.mu.Lock()
	defer s.mu.Unlock()
	var roots []delta.Root
	for _, sl := range []slot{s.base, s.own[0], s.own[1]} {
		if !sl.root.IsZero() {
			roots = append(roots, sl.root)
		}
	}
	return roots
}

// baseRoot returns the root of the base checkpoint, zero when there is none or it is not what it was.
func (s *slots) baseRoot() delta.Root {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.base.root
}

// holds tells whether the slot of that name holds root.
func (s *slots) holds(name string, root delta.Root) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(append(s.own[:], s.base), func(sl slot) bool { return sl.name == name && sl.root == root })
}

// find returns a slot that holds root. Our own come before the base, which others may change.
func (s *slots) find(root delta.Root) (slot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sl := range []slot{s.own[0], s.own[1], s.base} {
		if !root.IsZero() && sl.root == root {
			return sl, true
		}
	}
	return slot{}, false
}

// idle returns the slot of our own that may be written.
func (s *slots) idle() slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	other := s.busy
	if s.only != "" {
		other = s.otherName(s.only)
	}
	if s.own[0].name == other {
		return s.own[1]
	}
	return s.own[0]
}

// hold marks the one slot that must be left alone from now on.
func (s *slots) hold(sl slot) {
	s.mu.Lock()
	s.busy = sl.name
	s.mu.Unlock()
	if sl.name != "base" {
		s.clearFormer()
	}
}

// set notes what a slot holds.
func (s *slots) set(name string, root delta.Root) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setLocked(name, root)
}

// setLocked notes what a slot holds. Damage of what it held before does not matter any more once it holds something else.
func (s *slots) setLocked(name string, root delta.Root) {
	s.changes[name]++
	delete(s.unread, name)
	if !root.IsZero() {
		delete(s.harmed, name)
	}
	for _, sl := range []*slot{&s.own[0], &s.own[1], &s.base} {
		if sl.name == name {
			sl.root = root
		}
	}
}

// work says that something goes on that should have the disk to itself, until done is called.
func (s *slots) work() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.working--
	}
}

func (s *slots) atWork() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.working > 0
}
