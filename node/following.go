package node

import (
	"maps"
	"slices"
	"time"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// following is the part of the board about which version a rollout aims at: what it was told, what it knows, and what
// follows from that.
type following struct {
	maxLag uint64
	manual bool // engines confirm what they have loaded

	pin       *api.Pin
	fault     string                        // why it is not known whether there is a pin
	confirmed mesh.VersionRoot              // that the engine said it has loaded
	waiters   map[*api.PullRequest]struct{} // of pulls in progress that ask for a number

	last   mesh.Version // that was served, also when nothing is any more
	newest mesh.VersionRoot
	named  []mesh.VersionRoot // by the catalogue
	edges  []mesh.Edge        // on offer
	held   []delta.Root
	ways   []wayBack // that are kept here
	begun  []begun   // by downloads

	judged bool // goal is set; other roles have none
	goal   goal
	heard  []heard
}

// heard is when a version newer than the one served was first known to be there.
type heard struct {
	version mesh.Version
	at      time.Time
}

// learn notes what is there to follow and what is held.
func (b *board) learn(head mesh.Head, catalogue mesh.Catalogue, held []delta.Root) {
	b.newest = mesh.VersionRoot{Version: head.Version, Root: head.Root}
	b.named, b.edges, b.held = catalogue.Versions, offered(head, catalogue), held
	if b.newest.Root.IsZero() {
		return
	}
	v := versionInfo(head, nil)
	b.latest = &v
	b.newerSince() // makes room
	known := slices.ContainsFunc(b.heard, func(h heard) bool { return h.version == head.Version })
	if !known && len(b.heard) < api.MaxHistory { // the first one matters most
		b.heard = append(b.heard, heard{head.Version, time.Now()})
	}
}

// judge decides anew. Whatever changes what it looks at calls it, except that nothing is judged before it is known
// what the slots hold.
func (b *board) judge() goal {
	b.judged, b.goal = true, decide(b.situation())
	return b.goal
}

func (b *board) situation() situation {
	known := slices.Clone(b.named)
	for _, v := range b.history { // a slot may hold what is no longer on offer
		known = append(known, rootedIn(v))
	}
	return situation{
		newest: b.newest, known: slices.Concat(known, rootsOf(b.ways), named(b.begun)), edges: slices.Concat(b.edges, edgesOf(b.ways), begunEdges(b.begun)), held: b.held,
		served: b.servedRoot(), last: b.last, unconfirmed: b.unconfirmed(),
		pin: b.pin, fault: b.fault, maxLag: b.maxLag, wanted: b.wanted(),
	}
}

func (b *board) servedRoot() mesh.VersionRoot {
	if b.served == nil {
		return mesh.VersionRoot{}
	}
	return rootedIn(*b.served)
}

func rootedIn(v api.VersionInfo) mesh.VersionRoot {
	return mesh.VersionRoot{Version: versionOf(v), Root: v.Root}
}

// unconfirmed tells whether the engine may not have loaded what is served, and still read the slot served before. A
// version with the weights of the one confirmed needs no word.
func (b *board) unconfirmed() bool {
	return b.manual && b.served != nil && b.confirmed.Root != b.served.Root
}

// wanted returns the newest version that a pull in progress waits for.
func (b *board) wanted() (newest mesh.Version) {
	for r := range maps.Keys(b.waiters) {
		if v := b.asked(*r); v.Compare(newest) > 0 {
			newest = v
		}
	}
	return newest
}

// longUnconfirmed is how long a newer version waits for a confirm before that is called a problem.
const longUnconfirmed = time.Minute

// fillFollowing copies what concerns following into s.
func (b *board) fillFollowing(s *api.Status) {
	if !b.judged && b.pin == nil && b.fault == "" {
		return
	}
	s.Pin, s.Waiting = copyOf(b.pin), b.goal.why
	if s.State == api.StateError {
		s.Waiting = ""
	}
	if b.unconfirmed() {
		id := b.served.ID()
		s.Unconfirmed = &id
	}
	if b.served == nil || b.latest == nil {
		return
	}
	since := b.newerSince()
	if !since.IsZero() {
		s.BehindSeconds = time.Since(since).Seconds()
	}
	if versionOf(*b.served).Shares(versionOf(*b.latest)) {
		n := b.latest.Number - min(b.served.Number, b.latest.Number)
		s.Behind = &n
	}
	if s.Unconfirmed != nil && b.goal.do == collect && !since.IsZero() && time.Since(since) > longUnconfirmed {
		s.Problems = append(s.Problems, longWait(*b.served, time.Since(since)))
	}
}

// newerSince returns when the first version newer than the one served was heard, zero when there is none.
func (b *board) newerSince() time.Time {
	if b.served == nil {
		return time.Time{}
	}
	served := versionOf(*b.served)
	b.heard = slices.DeleteFunc(b.heard, func(h heard) bool { return h.version.Compare(served) <= 0 })
	if len(b.heard) == 0 {
		return time.Time{}
	}
	return b.heard[0].at
}
