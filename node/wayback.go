package node

import (
	"fmt"
	"slices"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/files"
)

// A node with one slot has nothing left of a version once the next one is in it. So it codes the way back while it changes
// the slot, and keeps that as an edge like any other, except that no publisher signed it and nobody else is told. It is
// a cache: without it, going back takes what is on offer.

// waysFile names the ways back of a run.
const waysFile = "ways_back.json"

// wayBack is an edge that this node wrote itself, and the version that it leads to.
type wayBack struct {
	Edge    mesh.Edge    `json:"edge"`
	Version mesh.Version `json:"version"` // zero when it is not known
}

type waysKept struct {
	Ways []wayBack `json:"ways"` // the oldest first
}

var waysNote = note[waysKept]{waysFile, "the ways back"}

// loadWays returns the ways back that are noted, none when there is no note. One that is damaged is an error.
func loadWays(dir *files.Dir) ([]wayBack, error) {
	n, _, err := waysNote.load(dir)
	if err != nil {
		return nil, err
	}
	if err := n.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", dir.Path(waysFile), err)
	}
	return n.Ways, nil
}

func (n waysKept) check() error {
	if len(n.Ways) > maxKeep {
		return fmt.Errorf("%d ways back, at most %d", len(n.Ways), maxKeep)
	}
	for i, w := range n.Ways {
		if e := w.Edge; !e.Manifest.Defined() || e.Base.IsZero() || e.Target.IsZero() || e.Base == e.Target {
			return fmt.Errorf("way back %d leads nowhere", i)
		}
	}
	return nil
}

func saveWays(dir *files.Dir, list []wayBack) error { return waysNote.save(dir, waysKept{list}) }

// usefulWays returns those of a list, the oldest first, that are of use to who holds these roots and may take these
// edges: not more than the newest few, none to the base, which stays here anyway, and none that begins where nothing
// leads any more.
func usefulWays(list []wayBack, held []delta.Root, base delta.Root, edges []mesh.Edge, most int) []wayBack {
	near := reachable(held, slices.Concat(edges, edgesOf(list)))
	var kept []wayBack
	for i, w := range list {
		again := slices.ContainsFunc(list[i+1:], func(v wayBack) bool { return v.Edge == w.Edge })
		if !again && near[w.Edge.Base] && w.Edge.Target != base {
			kept = append(kept, w)
		}
	}
	return kept[max(0, len(kept)-most):]
}

func edgesOf(list []wayBack) []mesh.Edge {
	edges := make([]mesh.Edge, len(list))
	for i, w := range list {
		edges[i] = w.Edge
	}
	return edges
}

// rootsOf returns the versions that ways lead to, where they are known.
func rootsOf(list []wayBack) (known []mesh.VersionRoot) {
	for _, w := range list {
		if w.Version != (mesh.Version{}) {
			known = append(known, mesh.VersionRoot{Version: w.Version, Root: w.Edge.Target})
		}
	}
	return known
}
