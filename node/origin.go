package node

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

// noteOrigin says, once it is known what the run starts from, that the base of this host is another checkpoint. Without
// a word a full copy would go over the network, and nobody would know why.
func (r *rollout) noteOrigin(head mesh.Head, catalogue mesh.Catalogue) {
	text := strayBase(r.slots.base.from, r.slots.baseRoot(), head, catalogue)
	if r.board.note("origin", text) && text != "" {
		r.log.Warn().Msg(text)
	}
}

// strayBase tells that a base is of no use in the run: it is none of its versions, and no edge on offer starts from it.
// A trainer keeps a way from its own base on offer.
func strayBase(from paths, base delta.Root, head mesh.Head, catalogue mesh.Catalogue) string {
	leads := func(e mesh.Edge) bool { return e.Base == base }
	switch {
	case base.IsZero(), head.Root.IsZero(), catalogue.Seq == 0: // not there, or nothing is known yet
		return ""
	case base == head.Root, catalogue.Knows(base), slices.ContainsFunc(offered(head, catalogue), leads):
		return ""
	}
	what := "nothing on offer starts from there"
	if start := origin(catalogue.Versions); !start.IsZero() {
		what = "the run's version 0 is " + start.Short()
	}
	return fmt.Sprintf("base %s has root %s, %s: set base: to the checkpoint that the trainer starts from", from, base.Short(), what)
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
