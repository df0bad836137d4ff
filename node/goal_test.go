package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
	"pgregory.net/rapid"
)

// The files in testdata/goal tell what a rollout makes of what it hears and is told, one event a line. A version is
// EPOCH/NUMBER, and its state is called by that name too; with a letter behind it is another state under that version.
//
//	newest VERSION          it is announced, and on offer from now on
//	withdrawn VERSION       it is no longer on offer, nor is any way to or from it
//	edge STATE STATE        the way from one to the other is on offer; 0 is nothing
//	held STATE...           these are in slots, and nothing else
//	served VERSION          it is served
//	pin NUMBER [EPOCH], unpin, damaged
//	max_lag N, wanted VERSION, unconfirmed, confirmed
//	goal                    what to do, in the indented line below
//	arrive                  that is done: it is served and held, beside what was served before
//
// Run with -update to write the goals anew.
type tale struct {
	s    situation
	last goal
}

func TestGoals(t *testing.T) {
	scenarios(t, "goal", retell)
}

func retell(t *testing.T, text string) string {
	var told strings.Builder
	var story tale
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if strings.HasPrefix(line, "  ") {
			continue // a goal, told anew
		}
		told.WriteString(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if err := story.hear(words[0], words[1:]); err != nil {
			t.Fatalf("%s: %v", strings.TrimSpace(line), err)
		}
		if words[0] == "goal" {
			fmt.Fprintf(&told, "  %s\n", story.last)
		}
	}
	return told.String()
}

func (g goal) String() string {
	verb := map[action]string{stay: "stay at", move: "bring up", collect: "fetch", await: "wait", expect: "expect it", listen: "listen"}[g.do]
	if !g.to.Root.IsZero() {
		verb += fmt.Sprintf(" %d/%d", g.to.Version.Epoch, g.to.Version.Number)
	}
	if g.why != "" {
		verb += ": " + g.why
	}
	return verb
}

func (story *tale) hear(verb string, words []string) (err error) {
	s := &story.s
	switch verb {
	case "newest":
		s.newest, err = version(words[0])
		s.known = append(s.known, s.newest)
	case "withdrawn":
		gone := root(words[0])
		s.known = slices.DeleteFunc(s.known, func(v mesh.VersionRoot) bool { return v.Root == gone })
		s.edges = slices.DeleteFunc(s.edges, func(e mesh.Edge) bool { return e.Base == gone || e.Target == gone })
	case "edge":
		s.edges = append(s.edges, edge(words[0], words[1], 1))
	case "held":
		s.held = nil
		for _, w := range words {
			s.held = append(s.held, root(w))
		}
	case "served":
		s.served, err = version(words[0])
	case "pin":
		s.fault, s.pin = "", &api.Pin{}
		if _, err = fmt.Sscan(words[0], &s.pin.Number); len(words) > 1 && err == nil {
			_, err = fmt.Sscan(words[1], &s.pin.Epoch)
		}
	case "unpin":
		s.fault, s.pin = "", nil
	case "damaged":
		s.fault = "the pin is not known"
	case "max_lag":
		_, err = fmt.Sscan(words[0], &s.maxLag)
	case "wanted":
		v, verr := version(words[0])
		s.wanted, err = v.Version, verr
	case "unconfirmed", "confirmed":
		s.unconfirmed = verb == "unconfirmed"
	case "goal":
		story.last = decide(*s)
		if s.pin != nil && s.pin.Root.IsZero() && !story.last.to.Root.IsZero() {
			s.pin = &api.Pin{Number: s.pin.Number, Epoch: story.last.to.Version.Epoch, Root: story.last.to.Root}
		}
	case "arrive":
		if story.last.do != move {
			return fmt.Errorf("the goal is to %s", story.last)
		}
		s.held = []delta.Root{s.served.Root, story.last.to.Root}
		s.served = story.last.to
	default:
		return fmt.Errorf("no such event")
	}
	return err
}

func version(name string) (v mesh.VersionRoot, err error) {
	_, err = fmt.Sscanf(name, "%d/%d", &v.Version.Epoch, &v.Version.Number)
	v.Root = root(name)
	return v, err
}

// TestGoalsKeepTheirPromises tries situations that nobody thought of.
func TestGoalsKeepTheirPromises(t *testing.T) {
	versions := rapid.Custom(func(t *rapid.T) mesh.VersionRoot {
		v, err := version(fmt.Sprintf("%d/%d%s", rapid.Uint64Range(1, 2).Draw(t, "epoch"), rapid.Uint64Range(0, 6).Draw(t, "number"),
			rapid.SampledFrom([]string{"", "", "b"}).Draw(t, "publisher")))
		if err != nil {
			t.Fatal(err)
		}
		return v
	})
	rapid.Check(t, func(t *rapid.T) {
		s := situation{
			known: rapid.SliceOfN(versions, 0, 6).Draw(t, "offered"), maxLag: rapid.Uint64Range(0, 3).Draw(t, "max lag"),
			unconfirmed: rapid.Bool().Draw(t, "unconfirmed"), wanted: versions.Draw(t, "wanted").Version,
		}
		if rapid.Bool().Draw(t, "serves") {
			s.served = versions.Draw(t, "served")
			s.held = append(s.held, s.served.Root)
		}
		if rapid.Bool().Draw(t, "knows") {
			s.newest = versions.Draw(t, "newest")
		}
		if rapid.Bool().Draw(t, "damaged") {
			s.fault = "damaged"
		}
		if rapid.Bool().Draw(t, "pinned") {
			s.pin = &api.Pin{Number: rapid.Uint64Range(0, 6).Draw(t, "pin"), Epoch: rapid.Uint64Range(0, 2).Draw(t, "epoch")}
		}
		for _, v := range rapid.SliceOfN(versions, 0, 8).Draw(t, "edges") {
			s.edges = append(s.edges, mesh.Edge{Base: versions.Draw(t, "base").Root, Target: v.Root})
		}
		g := decide(s)
		moves := g.do == move || g.do == collect
		served := s.served.Version
		switch {
		case g.do == move && s.unconfirmed:
			t.Fatalf("writes a slot that may be read: %v", g)
		case moves && s.fault != "":
			t.Fatalf("runs off: %v", g)
		case moves && s.pin != nil && (g.to.Version.Number != s.pin.Number || s.pin.Epoch != 0 && g.to.Version.Epoch != s.pin.Epoch):
			t.Fatalf("pinned to %v, goes to %v", s.pin, g)
		case moves && s.pin == nil && (g.to != s.newest || !s.served.Root.IsZero() && (g.to == s.served || g.to.Version.Compare(served) < 0)):
			t.Fatalf("neither pinned nor forward: %v", g)
		case g.do == stay && s.pin == nil && s.newest.Version == served && s.newest.Root != s.served.Root:
			t.Fatalf("stays at a root that does not count: %v", g)
		case moves && s.pin != nil && !reachable(s.held, s.edges)[g.to.Root]:
			t.Fatalf("cannot be reached: %v", g)
		case g.do == stay && g.to != s.served, (g.do == stay || moves) && g.to.Root.IsZero():
			t.Fatalf("stays nowhere: %v", g)
		case g.do == stay && s.pin == nil && s.newest.Version.Compare(served) > 0 &&
			(s.newest.Version.Epoch != served.Epoch || s.newest.Version.Number-served.Number > s.maxLag):
			t.Fatalf("too far behind: %v", g)
		case g.do == await && (g.why == "" || s.pin == nil && s.fault == ""):
			t.Fatalf("waits for nothing: %v", g)
		}
	})
}

// A version that took long to bring up may be wanted no more.
func TestGoalsWelcomeWhatWasBroughtUp(t *testing.T) {
	to := func(do action, number uint64) goal {
		return goal{do: do, to: mesh.VersionRoot{Version: mesh.Version{Epoch: 1, Number: number}, Root: delta.Root{1}}}
	}
	for _, c := range []struct {
		story     string
		g         goal
		v, served uint64
		want      bool
	}{
		{"as aimed at", to(move, 18), 18, 17, true},
		{"a newer one was heard", to(move, 19), 18, 17, true},
		{"pinned to what is served", to(stay, 17), 18, 17, false},
		{"pinned to an older one", to(move, 15), 18, 17, false},
		{"pinned to an older one, unpinned", to(move, 18), 15, 17, false},
		{"pinned to what is not there", to(await, 99), 18, 17, false},
		{"pinned back, as aimed at", to(move, 15), 15, 17, true},
		{"pinned back, then further", to(move, 12), 15, 17, false},
	} {
		v, served := mesh.Version{Epoch: 1, Number: c.v}, mesh.Version{Epoch: 1, Number: c.served}
		if got := c.g.welcomes(v, served); got != c.want {
			t.Errorf("%s: %t", c.story, got)
		}
	}
}

func TestRangesAreShort(t *testing.T) {
	var many []mesh.VersionRoot
	for i := range uint64(100) {
		many = append(many, mesh.VersionRoot{Version: mesh.Version{Epoch: 1, Number: 2 * i}})
	}
	for _, c := range []struct {
		versions []mesh.VersionRoot
		want     string
	}{
		{many[:1], "0"},
		{many[93:], "186, 188, 190, 192, 194, 196, 198"},
		{many, "older ones, 184, 186, 188, 190, 192, 194, 196, 198"},
		{[]mesh.VersionRoot{{Version: mesh.Version{Number: 3}}, {Version: mesh.Version{Number: 4}}, {Version: mesh.Version{Number: 5}}}, "3 to 5"},
		{[]mesh.VersionRoot{{Version: mesh.Version{Epoch: 1, Number: 3}}, {Version: mesh.Version{Epoch: 2, Number: 4}}}, "3 of epoch 1970-01-01 00:00:00.001, 4 of epoch 1970-01-01 00:00:00.002"},
	} {
		if got := ranges(c.versions); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// Of two roots that are signed for one version that of the head counts, also for a pin.
func TestPinToAVersionWithTwoRoots(t *testing.T) {
	v := mesh.Version{Epoch: 5, Number: 1}
	one, other := mesh.VersionRoot{Version: v, Root: root("one")}, mesh.VersionRoot{Version: v, Root: root("other")}
	s := situation{
		newest: one, served: one, last: v, known: []mesh.VersionRoot{other}, held: []delta.Root{one.Root, other.Root},
		pin: &api.Pin{Number: 1},
	}
	if g := decide(s); g.do != stay || g.to != one {
		t.Errorf("got %+v", g)
	}
}
