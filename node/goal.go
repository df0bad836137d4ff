package node

import (
	"fmt"
	"slices"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// situation is all that decides what a rollout does next. A version without a root is none.
type situation struct {
	newest mesh.VersionRoot   // by the head
	known  []mesh.VersionRoot // older ones whose roots are known
	edges  []mesh.Edge        // on offer
	held   []delta.Root       // in slots, or the base

	served      mesh.VersionRoot
	last        mesh.Version // that was served, also when it is lost and nothing is
	unconfirmed bool         // the engine may still read the slot that was served before

	pin    *api.Pin
	fault  string       // why it is not known whether there is a pin
	maxLag uint64       // numbers that served may be behind newest
	wanted mesh.Version // the newest that somebody waits for
}

// action is what to do about a goal.
type action int

const (
	stay    action = iota // what is served is what should be
	move                  // to is to be served
	collect               // the blocks that lead to it are wanted here, no more yet
	await                 // it cannot be had until something changes
	expect                // it is still to be published
	listen                // no version is known yet
)

// goal is what a rollout should do next, and why where a user would ask.
type goal struct {
	do  action
	to  mesh.VersionRoot // no root when it is not known
	why string
}

// decide returns the goal. It never leads back to an older version than the one served, except to the pinned one, and
// never leads anywhere while it is not known whether there is a pin.
func decide(s situation) goal {
	if s.fault != "" {
		return goal{do: await, why: s.fault}
	}
	if s.newest.Root.IsZero() {
		return goal{do: listen}
	}
	g := s.newer()
	if s.pin != nil {
		g = s.pinned()
	}
	if g.do == move && s.unconfirmed {
		g.do, g.why = collect, fmt.Sprintf("waiting for confirm of %d before bringing up %d", s.served.Version.Number, g.to.Version.Number)
	}
	return g
}

// welcomes tells whether v, which was made ready meanwhile, may still be served after the version served now: it is what
// is aimed at, or lies on the way there. A pin may have come or gone since it was aimed at.
func (g goal) welcomes(v, served mesh.Version) bool {
	onTheWay := v.Compare(served) > 0 && v.Compare(g.to.Version) < 0
	return g.do == move && (g.to.Version == v || onTheWay)
}

// newer aims at the newest version, unless that is served or near enough.
func (s situation) newer() goal {
	switch {
	case s.served.Root.IsZero():
		return goal{do: move, to: s.newest}
	case s.newest == s.served || s.newest.Version.Compare(s.served.Version) < 0:
		return goal{do: stay, to: s.served}
	case s.newest.Version == s.served.Version: // two publishers chose it, and the root that counts is not the one served
		return goal{do: move, to: s.newest}
	}
	behind := s.newest.Version.Number - s.served.Version.Number // of one epoch, or it does not matter
	awaited := s.wanted.Compare(s.served.Version) > 0 && s.wanted.Compare(s.newest.Version) <= 0
	// A base is number 0 of those epochs whose catalogue says so.
	counts := s.newest.Version.Epoch == s.served.Version.Epoch || s.newest.Version.Shares(s.served.Version) && slices.Contains(s.known, s.served)
	if counts && behind <= s.maxLag && !awaited {
		return goal{do: stay, to: s.served, why: fmt.Sprintf("%d behind %d, which max_lag allows", behind, s.newest.Version.Number)}
	}
	return goal{do: move, to: s.newest}
}

// pinned aims at the version that the pin names.
func (s situation) pinned() goal {
	to, known := s.pinnedVersion()
	short, name := fmt.Sprintf("pinned to %d", s.pin.Number), "pinned to "+pinName(s.pin)
	near := reachable(s.held, s.edges)
	switch {
	case known && to == s.served:
		return goal{do: stay, to: to, why: short}
	case known && near[to.Root]:
		return goal{do: move, to: to, why: short}
	case known:
		return goal{do: await, to: to, why: fmt.Sprintf("%s, which nothing on offer leads to any more: %s", name, s.choice(near))}
	case s.isAhead():
		return goal{do: expect, why: fmt.Sprintf("waiting for version %s, which this node is pinned to, to be published: %s", pinName(s.pin), s.choice(near))}
	default:
		return goal{do: await, why: fmt.Sprintf("%s, which is not on offer: %s", name, s.choice(near))}
	}
}

// isAhead tells whether the pin names a version that its trainer may still publish.
func (s situation) isAhead() bool {
	pin := mesh.Version{Epoch: s.pin.Epoch, Number: s.pin.Number}
	if pin.Epoch == 0 {
		pin.Epoch = s.newest.Version.Epoch
	}
	return pin.Compare(s.newest.Version) > 0
}

func pinName(p *api.Pin) string {
	if p.Epoch == 0 {
		return fmt.Sprint(p.Number)
	}
	return mesh.Version{Epoch: p.Epoch, Number: p.Number}.String()
}

// pinnedVersion finds the version that the pin names: the newest of that number, once and for all, when no epoch is given.
func (s situation) pinnedVersion() (found mesh.VersionRoot, ok bool) {
	if !s.pin.Root.IsZero() {
		return mesh.VersionRoot{Version: mesh.Version{Epoch: s.pin.Epoch, Number: s.pin.Number}, Root: s.pin.Root}, true
	}
	for _, v := range s.versions() {
		if v.Version.Number == s.pin.Number && (s.pin.Epoch == 0 || v.Version.Epoch == s.pin.Epoch) {
			found, ok = v, true
		}
	}
	return found, ok
}

// versions returns all versions whose roots are known here, ascending. Where two are signed for one version the head counts:
// a catalogue may tell of the one that was refused.
func (s situation) versions() []mesh.VersionRoot {
	all := slices.Concat([]mesh.VersionRoot{s.newest, s.served}, s.known)
	all = slices.DeleteFunc(all, func(v mesh.VersionRoot) bool { return v.Root.IsZero() })
	slices.SortStableFunc(all, func(v, w mesh.VersionRoot) int { return v.Version.Compare(w.Version) })
	return slices.CompactFunc(all, func(v, w mesh.VersionRoot) bool { return v.Version == w.Version })
}

// names returns the newest version of each state that has one which is known here.
func (s situation) names() map[delta.Root]mesh.Version {
	names := make(map[delta.Root]mesh.Version)
	for _, v := range s.versions() {
		names[v.Root] = v.Version
	}
	return names
}

// choice says which versions can be had, and what to do when the pinned one cannot.
func (s situation) choice(near map[delta.Root]bool) string {
	all := slices.DeleteFunc(s.versions(), func(v mesh.VersionRoot) bool { return !near[v.Root] })
	if len(all) == 0 {
		return "nothing is; let the trainer send a full copy (sparsecast publish --full), or sparsecast unpin"
	}
	return fmt.Sprintf("what can be had is %s; pin one of those, or sparsecast unpin to follow the newest", ranges(all))
}

// reachable returns the roots that are held or that edges lead to from there. The zero root, where anchors start, is.
func reachable(held []delta.Root, edges []mesh.Edge) map[delta.Root]bool {
	from := make(map[delta.Root][]delta.Root)
	for _, e := range edges {
		from[e.Base] = append(from[e.Base], e.Target)
	}
	near := make(map[delta.Root]bool)
	for next := append(slices.Clone(held), delta.Root{}); len(next) > 0; {
		r := next[len(next)-1]
		next = next[:len(next)-1]
		if !near[r] {
			near[r] = true
			next = append(next, from[r]...)
		}
	}
	return near
}
