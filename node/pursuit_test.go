package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"pgregory.net/rapid"
)

// TestPursuits reads testdata/pursuit/*.txt: the edges of a path that is being fetched, with their coded bytes, how many are
// left, and the word stop where the version that it leads to may be brought up on the way; the edges of the path that is
// the cheapest by now; and below "verdict" whether the download is stayed with, and what can be brought up when it ends
// now. Run with -update to write the answers anew.
func TestPursuits(t *testing.T) {
	scenarios(t, "pursuit", answered("verdict", verdict))
}

func verdict(t *testing.T, question string) string {
	var p pursuit
	var better []mesh.Edge
	left := make(remainder)
	for line := range strings.Lines(question) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		var coded uint64
		if _, err := fmt.Sscan(words[3], &coded); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		e := edge(words[1], words[2], coded)
		if i := slices.Index(words, "left"); i > 0 {
			var n uint64
			if _, err := fmt.Sscan(words[i+1], &n); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			left[e] = n
		}
		switch words[0] {
		case "path":
			p.path, p.stops = append(p.path, e), append(p.stops, slices.Contains(words, "stop"))
		case "better":
			better = append(better, e)
		default:
			t.Fatalf("unknown line %q", line)
		}
	}
	whole := slices.IndexFunc(p.path, func(e mesh.Edge) bool { return left.of(e) > 0 })
	if whole < 0 {
		whole = len(p.path)
	}
	next := p.next(left)
	s := fmt.Sprintf("leave it: %.0f bytes are less than %.0f up to %s\n", left.bytes(better), left.bytes(next), word(next[len(next)-1].Target))
	switch {
	case p.leadsInto(better):
		s = "stay: the better path begins that way\n"
	case p.stays(better, left):
		s = fmt.Sprintf("stay: %.0f bytes up to %s are no more than %.0f\n", left.bytes(next), word(next[len(next)-1].Target), left.bytes(better))
	}
	if n := p.reached(whole); n > 0 {
		return s + "bring up " + word(p.path[n-1].Target) + "\n"
	}
	return s + "bring up nothing\n"
}

// slowLink is a trainer that publishes while a rollout fetches, as plain state.
type slowLink struct {
	versions []mesh.VersionRoot
	edges    []mesh.Edge // on offer
	served   mesh.VersionRoot
	left     remainder

	p       pursuit
	aim     mesh.VersionRoot
	bound   float64 // of what may be fetched until something is brought up
	fetched float64 // since something was
}

func (s *slowLink) newest() mesh.VersionRoot { return s.versions[len(s.versions)-1] }

func (s *slowLink) base() delta.Root { return s.versions[0].Root }

func (s *slowLink) held() []delta.Root { return []delta.Root{s.base(), s.served.Root} }

// known are the edges that a rollout would look at.
func (s *slowLink) known() []mesh.Edge {
	known := slices.Clone(s.edges)
	for e, n := range s.left {
		if n < e.Coded && !slices.Contains(known, e) {
			known = append(known, e)
		}
	}
	return known
}

func (s *slowLink) stops() []bool {
	told := situation{newest: s.newest(), known: s.versions, served: s.served, last: s.served.Version}
	return told.stops(decide(told), s.p.path)
}

// here returns how many edges of the path are here, from the first.
func (s *slowLink) here() int {
	for i, e := range s.p.path {
		if s.left.of(e) > 0 {
			return i
		}
	}
	return len(s.p.path)
}

// isGone tells whether nobody has an edge any more: it left the offer before it was fetched.
func (s *slowLink) isGone(e mesh.Edge) bool {
	return s.left.of(e) == e.Coded && !slices.Contains(s.edges, e)
}

func (s *slowLink) plan(t *rapid.T) {
	s.p.path = nil
	if s.newest() == s.served {
		return
	}
	path, err := PlanAround(s.held(), s.newest().Root, s.known(), nil, s.left)
	if err != nil {
		t.Fatal(err)
	}
	s.p, s.aim = pursuit{path: path}.whole(), s.newest()
	if s.fetched == 0 {
		s.bound = s.left.bytes(path)
	}
}

// hear looks anew at the download at hand.
func (s *slowLink) hear(t *rapid.T) {
	s.p.stops = s.stops()
	if s.aim == s.newest() {
		s.p = s.p.whole()
	}
	better, err := PlanAround(s.held(), s.newest().Root, s.known(), nil, s.left)
	if err != nil {
		t.Fatal(err)
	}
	if !s.p.stays(better, s.left) {
		s.end(t)
	}
}

// end ends the download: what can be brought up is.
func (s *slowLink) end(t *rapid.T) {
	s.p.stops = s.stops()
	if n := s.p.reached(s.here()); n > 0 {
		i := slices.IndexFunc(s.versions, func(v mesh.VersionRoot) bool { return v.Root == s.p.path[n-1].Target })
		if i < 0 || s.versions[i].Version.Compare(s.served.Version) <= 0 {
			t.Fatalf("brings up %v after %v", s.p.path[n-1], s.served)
		}
		s.served, s.fetched = s.versions[i], 0
	}
	s.plan(t)
}

// However the versions come, and whatever leaves the offer but what is being fetched and a way from the base: a version
// is brought up after no more bytes than the path took when the first download since the last one began.
func TestSlowLinkArrives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &slowLink{versions: []mesh.VersionRoot{{Root: root("v0")}}, left: make(remainder)}
		s.served = s.versions[0]
		size := rapid.Uint64Range(1, 30)
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				n, epoch := uint64(len(s.versions)), s.newest().Version.Epoch
				if rapid.IntRange(0, 3).Draw(t, "new epoch") == 0 { // a trainer that was started again, and goes on
					epoch++
				}
				from, to := s.newest(), mesh.VersionRoot{Version: mesh.Version{Epoch: epoch, Number: n}, Root: root(fmt.Sprint("v", n))}
				s.versions = append(s.versions, to)
				s.edges = append(s.edges, edge(word(from.Root), word(to.Root), size.Draw(t, "delta")))
				if rapid.Bool().Draw(t, "shortcut") {
					s.edges = append(s.edges, edge("v0", word(to.Root), 3*size.Draw(t, "bytes")))
				}
				way, err := Plan([]delta.Root{s.base()}, to.Root, s.edges)
				if err != nil {
					t.Fatal(err)
				}
				s.edges = slices.DeleteFunc(s.edges, func(e mesh.Edge) bool { return !slices.Contains(way, e) && rapid.Bool().Draw(t, "leaves") })
				if len(s.p.path) == 0 {
					s.plan(t)
					return
				}
				s.hear(t)
			},
			"offer": func(t *rapid.T) {
				s.edges = append(s.edges, edge("v0", word(s.newest().Root), 3*size.Draw(t, "bytes")))
				if len(s.p.path) > 0 {
					s.hear(t)
				}
			},
			"fetch": func(t *rapid.T) {
				i := s.here()
				if i == len(s.p.path) {
					return
				}
				e := s.p.path[i]
				n := min(rapid.Uint64Range(1, 30).Draw(t, "bytes"), s.left.of(e))
				s.left[e] = s.left.of(e) - n
				if s.fetched += float64(n); s.fetched > s.bound {
					t.Fatalf("fetched %v bytes without an end, the path took %v", s.fetched, s.bound)
				}
				if i = s.here(); i == len(s.p.path) || s.left[e] == 0 && (s.p.stops[i-1] || s.isGone(s.p.path[i])) {
					s.end(t)
				}
			},
		})
	})
}

func TestStopsAreForNewerVersions(t *testing.T) {
	var known []mesh.VersionRoot
	var path []mesh.Edge
	for n := range uint64(6) {
		known = append(known, mesh.VersionRoot{Version: mesh.Version{Epoch: 1, Number: n}, Root: root(fmt.Sprint("v", n))})
		path = append(path, edge("0", fmt.Sprint("v", n), 1))
	}
	path = append(path, edge("0", "unknown", 1))
	for _, c := range []struct {
		story string
		s     situation
		want  string
	}{
		{"all that is newer", situation{served: known[1], last: known[1].Version}, "v2 v3 v4"},
		{"nothing was ever served", situation{}, "v0 v1 v2 v3 v4"},
		{"what was served is lost", situation{last: known[3].Version}, "v4"},
		{"max_lag", situation{served: known[1], last: known[1].Version, maxLag: 2}, "v4"},
		{"unconfirmed", situation{served: known[1], last: known[1].Version, unconfirmed: true}, ""},
	} {
		c.s.newest, c.s.known = known[5], known
		var got []string
		for i, stop := range c.s.stops(decide(c.s), path) {
			if stop {
				got = append(got, word(path[i].Target))
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: stops at %v, want %s", c.story, got, c.want)
		}
	}
}

func TestLeftBehind(t *testing.T) {
	at := func(epoch, number uint64, name string) mesh.VersionRoot {
		return mesh.VersionRoot{Version: mesh.Version{Epoch: epoch, Number: number}, Root: root(name)}
	}
	s := situation{newest: at(3, 8, "b8"), known: []mesh.VersionRoot{at(1, 4, "a4"), at(1, 5, "a5"), at(1, 6, "a6"), at(2, 6, "b6"), at(2, 7, "b7")}}
	for _, c := range []struct {
		v    mesh.VersionRoot
		want bool
	}{
		{at(1, 4, "a4"), false}, {at(1, 5, "a5"), false},
		{at(1, 6, "a6"), true}, {at(1, 7, "a7"), true}, {at(1, 9, "a9"), true},
		{at(2, 6, "b6"), false}, {at(2, 7, "b7"), false}, {at(2, 8, "x"), true},
		{at(2, 8, "b8"), false}, // announced again by a trainer that took over
		{at(3, 8, "b8"), false}, {at(4, 1, "c1"), false},
	} {
		if got := s.leftBehind(c.v); got != c.want {
			t.Errorf("%s is left behind: %v, want %v", c.v.Version, got, c.want)
		}
	}
	var path []mesh.Edge
	for _, name := range []string{"a4", "a6", "b6", "b8"} {
		path = append(path, edge("0", name, 1))
	}
	if got := s.stops(decide(s), path); !slices.Equal(got, []bool{true, false, true, false}) {
		t.Errorf("stops %v at 4, the 6 left behind, 6 and the newest", got)
	}
}
