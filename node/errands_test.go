package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
	"pgregory.net/rapid"
)

// What a relay has under way, in words: an edge is named by the versions it joins, and one of which only the make-up is
// looked up has a question mark. All edges have 100 bytes, unless it says how many are left.
func TestErrands(t *testing.T) {
	type c struct {
		wanted, steps, unknown, underWay, stalled, resting string
		behind                                             bool
		want                                               string
	}
	for name, c := range map[string]c{
		"nothing lacking":                             {want: ""},
		"the newest step first":                       {steps: "0-1 1-2 2-3", unknown: "0-3 0-1 1-2", want: "2-3 1-2? 0-1? 0-3?"},
		"what one begins with is not looked up apart": {steps: "2-3", unknown: "0-3 2-3", want: "2-3 0-3?"},
		"a step of which less is left is finished":    {steps: "1-2:60 2-3", underWay: "1-2", want: "1-2"},
		"one that has just begun is not":              {steps: "1-2 2-3", underWay: "1-2", want: "2-3"},
		"nor one that nobody fetches":                 {steps: "1-2:60 2-3", want: "2-3"},
		"what a peer fetches comes before steps":      {wanted: "0-3", steps: "1-2:1 2-3", underWay: "1-2", unknown: "0-2", want: "0-3 0-2?"},
		"whoever wants what, all at the same time":    {wanted: "0-1 0-3", steps: "2-3", want: "0-1 0-3"},
		"with the least left first, where there are many": {wanted: "0-1:9 0-2:8 0-3:7 0-4:6 0-5:5 0-6:4 0-7:3 0-8:2 0-9:1", underWay: "0-1",
			want: "0-1 0-9 0-8 0-7 0-6 0-5 0-4 0-3"},
		"no step where the link is behind":          {steps: "1-2:1 2-3", underWay: "1-2", behind: true, unknown: "1-2", want: "1-2?"},
		"what a peer fetches also then":             {wanted: "1-2", steps: "1-2 2-3", behind: true, want: "1-2"},
		"what nobody has is waited for, beside all": {wanted: "0-3", steps: "1-2 2-3", underWay: "0-3", stalled: "0-3", want: "0-3 2-3"},
		"a step, too":                                {steps: "1-2 2-3", underWay: "2-3", stalled: "2-3", want: "2-3 1-2"},
		"both once":                                  {wanted: "2-3", steps: "1-2 2-3", underWay: "2-3", stalled: "2-3", want: "2-3 1-2"},
		"and what says how one looks":                {unknown: "0-2 0-3", underWay: "0-3?", stalled: "0-3?", want: "0-3? 0-2?"},
		"several are looked up at a time":            {unknown: "0-1 0-2 0-3 0-4 0-5", want: "0-5? 0-4? 0-3? 0-2?"},
		"what stalled and is not wanted goes":        {steps: "2-3", underWay: "0-3", stalled: "0-3", want: "2-3"},
		"what rests does":                            {wanted: "0-3", steps: "1-2 2-3", resting: "0-3 2-3", want: "1-2"},
		"an edge that rests is not looked up either": {unknown: "0-2 0-3", resting: "0-3", want: "0-2?"},
	} {
		e := errands{left: make(remainder), behind: c.behind}
		e.wanted, e.steps, e.unknown = e.read(c.wanted), e.read(c.steps), e.read(c.unknown)
		e.underWay, e.stalled, e.resting = readErrands(c.underWay), readErrands(c.stalled), readErrands(c.resting)
		if got := writeErrands(e.choose()); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// read takes edges, and what is left of them.
func (e errands) read(text string) (edges []mesh.Edge) {
	for _, field := range strings.Fields(text) {
		name, left, some := strings.Cut(field, ":")
		it := readErrand(name)
		if edges = append(edges, it.edge); some {
			var n uint64
			fmt.Sscan(left, &n)
			e.left[it.edge] = n
		}
	}
	return edges
}

func readErrand(text string) errand {
	name, look := strings.CutSuffix(text, "?")
	from, to, _ := strings.Cut(name, "-")
	return errand{edge(from, to, 100), !look}
}

func readErrands(text string) map[errand]bool {
	set := make(map[errand]bool)
	for _, field := range strings.Fields(text) {
		set[readErrand(field)] = true
	}
	return set
}

func writeErrands(list []errand) string {
	var names []string
	for _, it := range list {
		for from := range 10 {
			for to := range 10 {
				for _, mark := range []string{"", "?"} {
					if name := fmt.Sprintf("%d-%d%s", from, to, mark); readErrand(name) == it {
						names = append(names, name)
					}
				}
			}
		}
	}
	return strings.Join(names, " ")
}

// Whatever the state: nothing twice, nothing that rests or is of no use, no more than there is room for; what moves for a
// peer goes on, and what stands still holds up nothing.
func TestErrandsAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []mesh.Edge
		for i := range 24 {
			all = append(all, edge("v", fmt.Sprint(i), 100))
		}
		some := func(name string) []mesh.Edge {
			return rapid.SliceOfNDistinct(rapid.SampledFrom(all), 0, len(all), func(e mesh.Edge) string { return e.Manifest.KeyString() }).Draw(t, name)
		}
		e := errands{
			wanted: some("wanted"), steps: some("steps"), unknown: some("unknown"), behind: rapid.Bool().Draw(t, "behind"), left: make(remainder),
			underWay: make(map[errand]bool), stalled: make(map[errand]bool), resting: make(map[errand]bool),
		}
		for _, it := range slices.Concat(toFetch(all), toLookAt(all)) {
			e.left[it.edge] = rapid.Uint64Range(0, 100).Draw(t, "left")
		}
		useful := slices.Concat(toFetch(e.wanted), toFetch(e.steps), toLookAt(e.unknown))
		pass := func() {
			chosen := e.choose()
			seen, moving := make(map[errand]bool), 0
			for _, it := range chosen {
				if seen[it] || e.resting[it] || !slices.Contains(useful, it) {
					t.Fatalf("%v is under way", it)
				}
				if seen[it] = true; !e.stalled[it] {
					moving++
				}
			}
			if len(chosen) > maxUnderWay || moving > maxErrands+maxLooks {
				t.Fatalf("%d are under way, %d of them move", len(chosen), moving)
			}
			for it := range e.underWay {
				wanted := it.whole && slices.Contains(e.wanted, it.edge)
				if (wanted || e.stalled[it]) && slices.Contains(useful, it) && !e.resting[it] && !seen[it] && moving < maxErrands {
					t.Fatalf("%v is left", it)
				}
			}
			if moving == 0 && len(chosen) < maxUnderWay && slices.ContainsFunc(e.wanted, func(w mesh.Edge) bool { return !e.isHopeless(errand{w, true}) }) {
				t.Fatal("nothing moves, and something could")
			}
			e.underWay = seen
		}
		for range 5 { // as a relay would live
			pass()
			e.stalled = make(map[errand]bool)
			for it := range e.underWay {
				switch rapid.IntRange(0, 3).Draw(t, "fate") {
				case 0:
					e.stalled[it] = true
				case 1:
					delete(e.underWay, it)
					e.resting[it] = true
				}
			}
		}
	})
}

func TestRests(t *testing.T) {
	r, now, it := make(rests), time.Unix(100, 0), errand{edge("0", "1", 1), true}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		want *= time.Second
		if got := r.begin(now, it, errUnobtainable); got != want {
			t.Errorf("the pause after failure %d is %v, want %v", i+1, got, want)
		}
		if !r.now(now.Add(want - 1))[it] || r.err(now.Add(want-1)) == nil {
			t.Errorf("tried again within %v", want)
		}
		if r.now(now.Add(want))[it] || r.err(now.Add(want)) != nil {
			t.Errorf("not tried again after %v", want)
		}
	}
	if r.end(); r.now(now)[it] {
		t.Error("not tried again when somebody came")
	}
	if pause := r.begin(now, it, errUnobtainable); pause != longPause {
		t.Errorf("forgotten when somebody came: %v", pause)
	}
	if r.keep([]mesh.Edge{it.edge}); !r.now(now)[it] {
		t.Error("an edge that is kept was forgotten")
	}
	if r.keep(nil); len(r) > 0 {
		t.Error("an edge that is gone was not forgotten")
	}
	r.begin(now, it, errUnobtainable)
	if r.forget(it); r.begin(now, it, errUnobtainable) != firstPause {
		t.Error("what was done was not forgotten")
	}
}
