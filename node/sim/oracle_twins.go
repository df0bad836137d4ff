package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// proof returns the two heads that contradict each other by the ledger; ok is false where there are none.
func (b *box) proof() (first, second mesh.Head, ok bool, err error) {
	first, one, err := b.recordedHead("conflict-first.signed")
	if err != nil {
		return first, second, false, err
	}
	second, other, err := b.recordedHead("conflict.signed")
	return first, second, one && other, err
}

// lookAtProof checks that a node which has proof against the epoch of its newest head h stays where it is.
func (b *box) lookAtProof(h mesh.Head) {
	_, against, ok, err := b.proof()
	if err != nil {
		b.w.violate(freezes, "%s: the proof on disk is unreadable: %v", b.name(), err)
	}
	if !ok || against.Version.Epoch != h.Version.Epoch {
		return
	}
	at := mesh.VersionRoot{Version: h.Version, Root: h.Root}
	b.mu.Lock()
	if b.frozen.Version.Epoch != h.Version.Epoch {
		b.frozen = at
	}
	first := b.frozen
	b.mu.Unlock()
	if first != at {
		b.w.violate(staysFrozen, "%s: it has proof against version %s, was at %s with root %s and is at %s with root %s",
			b.name(), against.Version, first.Version, first.Root.Short(), at.Version, at.Root.Short())
	}
}

// opened tells whether a catalogue of that epoch is of this machine's trainer, and not of its twin.
func (b *box) opened(epoch uint64) bool {
	for _, o := range b.w.boxes {
		if o != b && o.program.everOpened(epoch) {
			return false
		}
	}
	return b.program.opened(epoch)
}

// noteOpening notes an epoch in the instant in which a trainer first has a catalogue of it, if that is its own: it brings
// a state of its own, or the epoch is the time by its clock, where one that was heard of would be older.
func (b *box) noteOpening() {
	c, ok, _ := b.catalogue()
	if !ok || !b.entersEpoch(c.Epoch) {
		return
	}
	own := len(c.Versions) > 0 && b.w.oracle.made(c.Versions[len(c.Versions)-1].Root, b.index)
	if own || c.Epoch == uint64(max(b.now().UnixMilli(), 0)) { //nolint:gosec // not negative
		b.w.oracle.open(c.Epoch, b.index)
	}
}

// entersEpoch notes the epoch of a catalogue, and tells whether the one before was of another.
func (b *box) entersEpoch(epoch uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.epoch
	b.epoch = epoch
	return before != epoch
}

// rivals tells whether there are trainers with keys of their own: of one version of two of them one counts, by the key.
func (w *World) rivals() bool { return len(w.publishers()) > 1 }

// divided says who is at a version of which a peer has a different root, though everybody has had time to ask: of two
// publishers one counts, and of one it is said and can be proven that it signed both.
func (w *World) divided() string {
	var late []string
	for _, b := range w.boxes {
		for _, o := range w.boxes {
			h, ok, _ := b.head()
			other, known, _ := o.head()
			if !ok || !known || h.Version != other.Version || h.Root == other.Root || !b.meets(o) {
				continue
			}
			if lack := b.lacksProof(h.Version); lack != "" {
				late = append(late, fmt.Sprintf("%s is at %s with root %s, its peer %s with %s, and the first %s",
					b.name(), h.Version, h.Root.Short(), o.name(), other.Root.Short(), lack))
			}
		}
		if lack := b.contradictsItself(); lack != "" {
			late = append(late, lack)
		}
	}
	return strings.Join(late, "\n    ")
}

// meets tells whether b is connected to o for certain: a peer with the key of twins may be either.
func (b *box) meets(o *box) bool {
	n := b.alive()
	if n == nil {
		return false
	}
	for _, twin := range b.w.boxes {
		if twin != o && twin.id == o.id {
			return false
		}
	}
	return slices.ContainsFunc(n.Status(b.w.ctx).Peers, func(p api.PeerInfo) bool { return p.ID == o.id.String() })
}

// contradictsItself says that a node serves another root of the newest version than the one that counts.
func (b *box) contradictsItself() string {
	n := b.alive()
	if n == nil || b.plan.Role != mesh.RoleRollout {
		return ""
	}
	s := n.Status(b.w.ctx)
	if s.Served == nil || s.Latest == nil || versionOf(s.Served) != versionOf(s.Latest) || s.Served.Root == s.Latest.Root {
		return ""
	}
	return fmt.Sprintf("%s serves %s with root %s, and knows it with %s", b.name(), textOf(s.Served), s.Served.Root.Short(), s.Latest.Root.Short())
}

// lacksProof says what a node lacks that has heard of two roots of version v.
func (b *box) lacksProof(v mesh.Version) string {
	first, second, ok, _ := b.proof()
	n := b.alive()
	switch {
	case n == nil:
		return "is down"
	case b.w.rivals():
		return "has not made up its mind"
	case !strings.Contains(strings.Join(n.Status(b.w.ctx).Problems, "\n"), "signed two roots for version"):
		return "does not say so"
	case !ok || first.Version.Epoch != v.Epoch || first.Version != second.Version || first.Root == second.Root:
		return "has no proof"
	}
	return ""
}
