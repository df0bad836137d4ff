package node

import (
	"slices"

	"github.com/sparsecast/sparsecast/mesh"
)

// Where a link is slower than the publishes, every download is overtaken by a newer version before it ends. What was
// overtaken is finished all the same, unless all of another path takes fewer bytes than what is left up to the next
// version that can be brought up: that bound only ever falls, so a version is brought up after no more bytes than the
// path took when its download began, however often a newer one comes.

// remainder says how many bytes are still to come of edges of which something is here. Of all others all is.
type remainder map[mesh.Edge]uint64

func (l remainder) of(e mesh.Edge) uint64 {
	if n, ok := l[e]; ok {
		return min(n, e.Coded)
	}
	return e.Coded
}

// bytes adds up what is still to come of a path. As a float it does not wrap.
func (l remainder) bytes(path []mesh.Edge) (sum float64) {
	for _, e := range path {
		sum += float64(l.of(e))
	}
	return sum
}

// pursuit is a download along a path. Stops tells of each edge whether the version that it leads to may be brought up
// before the rest is here, vain whether the version at the end is left behind.
type pursuit struct {
	path  []mesh.Edge
	stops []bool
	vain  bool
}

// whole is the download while no newer version is out: there is no hurry to bring anything up on the way.
func (p pursuit) whole() pursuit { return pursuit{path: p.path, stops: make([]bool, len(p.path))} }

// stays tells whether to stay with the download when better is the cheapest path by now.
func (p pursuit) stays(better []mesh.Edge, left remainder) bool {
	return p.leadsInto(better) || left.bytes(p.next(left)) <= left.bytes(better)
}

// leadsInto tells whether a path begins with all of this one: then nothing is fetched in vain.
func (p pursuit) leadsInto(path []mesh.Edge) bool {
	if len(p.path) > len(path) {
		return false
	}
	for i, e := range p.path {
		if path[i].Manifest != e.Manifest {
			return false
		}
	}
	return true
}

// next returns the path up to the first version that can be brought up once what is missing is here.
func (p pursuit) next(left remainder) []mesh.Edge {
	missing := false
	for i, e := range p.path {
		if missing = missing || left.of(e) > 0; missing && p.stops[i] {
			return p.path[:i+1]
		}
	}
	return p.path
}

// reached returns how many edges lead to the newest version that can be brought up when the first n are here, 0 when
// none can.
func (p pursuit) reached(n int) int {
	for n > 0 && n < len(p.path) && !p.stops[n-1] {
		n--
	}
	return n
}

// stops tells for each edge of a path to a goal whether the version there may be served on the way: it is known, not left
// behind, newer than what is served by more than max_lag allows, and nobody asked for just one version or has a slot read
// that would be written.
func (s situation) stops(g goal, path []mesh.Edge) []bool {
	stops := make([]bool, len(path))
	if g.do != move || s.pin != nil {
		return stops
	}
	names := s.names()
	for i, e := range path {
		v, known := names[e.Target]
		stops[i] = known && v.Compare(g.to.Version) < 0 && s.isBeyond(v) && !s.leftBehind(mesh.VersionRoot{Version: v, Root: e.Target})
	}
	return stops
}

// leftBehind tells whether a trainer has gone back to before v: a newer epoch has its number, or a lower one, and other
// weights. That the epoch is older does not tell: every start of a trainer opens one, and as a rule goes on from where it
// was. On a slow link nothing might ever come up if versions of older epochs did not count.
func (s situation) leftBehind(v mesh.VersionRoot) bool {
	return slices.ContainsFunc(s.versions(), func(w mesh.VersionRoot) bool {
		return w.Version.Epoch > v.Version.Epoch && w.Version.Number <= v.Version.Number && w.Root != v.Root
	})
}

// isBeyond tells whether a version is newer than the one served, or served last, and by more than max_lag allows.
func (s situation) isBeyond(v mesh.Version) bool {
	near := !s.served.Root.IsZero() && v.Shares(s.last) && v.Number-s.last.Number <= s.maxLag
	return v.Compare(s.last) > 0 && !near
}
