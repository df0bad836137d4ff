package node

import (
	"time"

	"github.com/sparsecast/sparsecast/mesh"
)

const (
	firstAvoid = 30 * time.Second // for which an edge is avoided at first, when there is no news
	longAvoid  = 10 * time.Minute // and at most
)

// avoidance remembers edges that nobody could deliver. Each comes back into play after a pause, longer every time, or
// when there is news: a peer that may have it, or another catalogue. But news that comes often is no reason to drop a
// download that does well again and again: after the first time an edge is avoided for some while all the same.
// It is plain state, without a clock of its own.
type avoidance struct{ edges map[mesh.Edge]*blamed }

type blamed struct {
	times int
	until time.Time // when it is tried again without news
	early time.Time // when it may be tried again with news
}

// blame notes that an edge could not be had.
func (a *avoidance) blame(now time.Time, e mesh.Edge) {
	if a.edges == nil {
		a.edges = make(map[mesh.Edge]*blamed)
	}
	b := a.edges[e]
	if b == nil {
		b = &blamed{}
		a.edges[e] = b
	}
	pause := firstAvoid << min(b.times, 16)
	b.until, b.early = now.Add(min(pause, longAvoid)), now
	if b.times > 0 {
		b.early = now.Add(min(pause/2, longAvoid))
	}
	b.times++
}

// news notes that what could not be had may be there by now.
func (a *avoidance) news(now time.Time) {
	for _, b := range a.edges {
		t := later(b.early, now)
		if t.Before(b.until) {
			b.until = t
		}
	}
}

// forget drops what is no longer on offer.
func (a *avoidance) forget(edges []mesh.Edge) {
	on := edgeSet(edges)
	for e := range a.edges {
		if !on[e] {
			delete(a.edges, e)
		}
	}
}

// now returns the edges to avoid.
func (a *avoidance) now(now time.Time) map[mesh.Edge]bool {
	set := make(map[mesh.Edge]bool, len(a.edges))
	for e, b := range a.edges {
		if now.Before(b.until) {
			set[e] = true
		}
	}
	return set
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
