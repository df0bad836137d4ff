package sim

import (
	"slices"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

// stand is what a trainer had on offer when it was last looked at, and what had left the offer with its head.
type stand struct {
	life  *life
	head  mesh.Head
	seq   uint64
	edges []mesh.Edge
	left  []mesh.Edge // due to stay until the next head
}

// lookAtStand checks, whenever the offer of a trainer has changed, that all of it is there, and that so is what has just
// left it: somebody may be fetching that by the catalogue before.
func (b *box) lookAtStand() {
	now, c, ok := b.stand()
	was := b.lastStand
	if ok && was.life == now.life && was.head.Version == now.head.Version && was.seq == now.seq {
		return
	}
	switch {
	case !ok || was.life != now.life: // what left before a start is forgotten
	case was.head.Version == now.head.Version:
		now.left = leavers(append(was.edges, was.left...), now.edges)
	case follows(c, was.head.Version, now.head.Version):
		now.left = leavers(was.edges, now.edges)
	}
	b.lastStand = now
	if !ok || b.troubled.Load() { // a read that failed drops what it wanted to read
		return
	}
	b.lookAtOffer()
	b.lookAtWays(was, now)
	for _, e := range now.left {
		if err := b.need(e, make(map[string]bool)); err != nil {
			b.w.violate(waitsForTheSlow, "%s: with %s newest, the edge from %s to %s: %v",
				b.name(), now.head.Version, e.Base.Short(), e.Target.Short(), err)
		}
	}
}

// stand returns the offer by the disk; ok is false where it is not one that this machine's program made.
func (b *box) stand() (s stand, c mesh.Catalogue, ok bool) {
	c, ok, err := b.catalogue()
	h, known, herr := b.head()
	if err != nil || herr != nil || !ok || !known || c.Epoch != h.Version.Epoch || !b.opened(c.Epoch) {
		return stand{}, c, false
	}
	s = stand{life: b.life, head: h, seq: c.Seq, edges: c.Edges}
	if h.Edge.Manifest.Defined() && !slices.Contains(s.edges, h.Edge) {
		s.edges = append(s.edges, h.Edge)
	}
	return s, c, true
}

// leavers are the edges that are on offer no more.
func leavers(before, now []mesh.Edge) []mesh.Edge {
	return slices.DeleteFunc(slices.Clone(before), func(e mesh.Edge) bool { return slices.Contains(now, e) })
}

// follows tells whether no version lies between two of one epoch.
func follows(c mesh.Catalogue, before, after mesh.Version) bool {
	i := slices.IndexFunc(c.Versions, func(v mesh.VersionRoot) bool { return v.Version == after })
	return i > 0 && before.Epoch == after.Epoch && c.Versions[i-1].Version == before
}

// lookAtWays checks that those who start from the base, or from nothing where full copies are always offered, find a way to
// the newest version, if they found one before. From the base there
// is none to another shape.
func (b *box) lookAtWays(was, now stand) {
	if was.life != now.life || was.head.Version.Epoch != now.head.Version.Epoch || was.head.Schema != now.head.Schema {
		return
	}
	var starts []delta.Root
	if b.plan.Base && now.head.Schema == b.w.base.schema.ID() {
		starts = append(starts, b.w.base.root())
	}
	if b.w.plan.Full == "always" {
		starts = append(starts, delta.Root{})
	}
	for _, start := range starts {
		if was.leads(start) && !now.leads(start) {
			b.w.violate(keepsTheWays, "%s: from %s there was a way to %s, and there is none to %s", b.name(), start.Short(), was.head.Version, now.head.Version)
		}
	}
}

// leads tells whether edges on offer lead from a state, or from nothing, to the newest.
func (s stand) leads(from delta.Root) bool {
	near := map[delta.Root]bool{from: true, {}: true}
	for grown := true; grown; {
		grown = false
		for _, e := range s.edges {
			if near[e.Base] && !near[e.Target] {
				near[e.Target], grown = true, true
			}
		}
	}
	return near[s.head.Root]
}
