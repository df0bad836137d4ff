package node

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

// noteOrigin says, once it is known what the run starts from, that the base of this host is another checkpoint. Without
// a word a full copy would go over the network, and nobody would know why. An engine is not to load that base either, once
// it is known for certain: nothing need start from the right one any more, as when the weights got another shape.
func (r *rollout) noteOrigin(head mesh.Head, catalogue mesh.Catalogue) {
	text := strayBase(r.slots.base.from, r.slots.baseRoot(), head, catalogue)
	if r.board.note("origin", text) && text != "" {
		r.log.Warn().Msg(text)
	}
	if !r.served.Root.IsZero() {
		return
	}
	if err := r.showBase(!r.past && !foreign(text, catalogue)); err != nil {
		r.log.Warn().Err(err).Msg("the link current could not be changed")
	}
}

// foreign tells whether a base of which strayBase has a word to say is for certain none of the run's.
func foreign(stray string, catalogue mesh.Catalogue) bool {
	return stray != "" && !origin(catalogue.Versions).IsZero()
}

// showBase lets the link current lead to the base, or to nothing where that is not the run's, while nothing is served.
func (r *rollout) showBase(is bool) error {
	base := r.slots.base
	switch {
	case r.slots.baseRoot().IsZero():
		return nil
	case is && r.disowned:
		r.disowned = false
		return r.slots.point(base)
	case !is && !r.disowned:
		r.disowned = true
		return r.slots.unpoint()
	}
	return nil
}

// strayBase tells that a base is of no use in the run: it is none of its versions, and no edge on offer starts from it.
// A trainer keeps a way from its own base on offer.
func strayBase(from paths, base delta.Root, head mesh.Head, catalogue mesh.Catalogue) string {
	leads := func(e mesh.Edge) bool { return e.Base == base }
	switch {
	case base.IsZero(), head.Root.IsZero(), catalogue.Seq == 0, catalogue.Epoch != head.Version.Epoch: // not there, or not known yet
		return ""
	case base == head.Root, catalogue.Knows(base), slices.ContainsFunc(offered(head, catalogue), leads):
		return ""
	}
	start := origin(catalogue.Versions)
	if start.IsZero() {
		return fmt.Sprintf("base %s has root %s, from where nothing on offer starts: either it is not the checkpoint that the trainer starts from, "+
			"or the weights have got other tensors since, and only full copies lead on", from, base.Short())
	}
	return fmt.Sprintf("base %s has root %s, the run's version 0 is %s: set base: to the checkpoint that the trainer starts from",
		from, base.Short(), start.Short())
}

// String names the checkpoints as a command line does.
func (p paths) String() string {
	var list []string
	for _, name := range p.names() {
		if name == "" {
			list = append(list, p[name])
			continue
		}
		list = append(list, name+"="+p[name])
	}
	return strings.Join(list, " ")
}
