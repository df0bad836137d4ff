package node

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"pgregory.net/rapid"
)

// TestScenarios reads testdata/planner/*.txt: the states held, the one wanted, one edge a line with its coded bytes and
// the word avoid when it turned out to be unobtainable, and below "plan" the answer with its bytes in all. State 0 is
// nothing. Run with -update to write the answers anew.
func TestScenarios(t *testing.T) {
	scenarios(t, "planner", answered("plan", answer))
}

func answer(t *testing.T, question string) string {
	var held []delta.Root
	var target delta.Root
	var edges []mesh.Edge
	avoid, left := make(map[mesh.Edge]bool), make(remainder)
	for line := range strings.Lines(question) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		switch words[0] {
		case "held":
			for _, w := range words[1:] {
				held = append(held, root(w))
			}
		case "wanted":
			target = root(words[1])
		case "edge":
			var coded uint64
			if _, err := fmt.Sscan(words[3], &coded); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			e := edge(words[1], words[2], coded)
			edges = append(edges, e)
			avoid[e] = slices.Contains(words[4:], "avoid")
			if slices.Contains(words[4:], "here") {
				left[e] = 0
			}
		default:
			t.Fatalf("unknown line %q", line)
		}
	}
	path, err := PlanAround(held, target, edges, avoid, left)
	if errors.Is(err, ErrNoPath) {
		return "no path\n"
	}
	if err != nil {
		t.Fatal(err)
	}
	if path == nil {
		return "held already\n"
	}
	var s strings.Builder
	for _, e := range path {
		fmt.Fprintf(&s, "%s %s %d\n", word(e.Base), word(e.Target), e.Coded)
	}
	fmt.Fprintf(&s, "bytes %s\n", total(path))
	return s.String()
}

// root names a state by a word; 0 is nothing.
func root(word string) (r delta.Root) {
	if word != "0" {
		copy(r[:], word)
	}
	return r
}

func word(r delta.Root) string {
	if r.IsZero() {
		return "0"
	}
	return strings.TrimRight(string(r[:]), "\x00")
}

// edge makes an edge whose manifest follows from its ends and size.
func edge(base, target string, coded uint64) mesh.Edge {
	return mesh.Edge{Manifest: delta.Sum(fmt.Append(nil, base, target, coded)), Base: root(base), Target: root(target), Coded: coded}
}

func TestNoPathSaysWhatHelps(t *testing.T) {
	_, err := Plan([]delta.Root{root("a")}, root("c"), []mesh.Edge{edge("b", "c", 1)})
	if !errors.Is(err, ErrNoPath) || !strings.Contains(err.Error(), "--full") || !strings.Contains(err.Error(), root("c").Short()) {
		t.Errorf("got %v", err)
	}
}

// TestPlanAgainstBruteForce compares with all simple paths of small graphs, sizes near the end of uint64 included.
func TestPlanAgainstBruteForce(t *testing.T) {
	states := rapid.SampledFrom([]string{"0", "a", "b", "c", "d", "e"})
	sizes := rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Uint64Range(math.MaxUint64-2, math.MaxUint64))
	edges := rapid.Custom(func(t *rapid.T) mesh.Edge {
		e := edge(states.Draw(t, "base"), states.Draw(t, "target"), sizes.Draw(t, "coded"))
		e.Manifest = delta.Sum([]byte{rapid.Byte().Draw(t, "manifest")})
		return e
	})
	rapid.Check(t, func(t *rapid.T) {
		offer := rapid.SliceOfN(edges, 0, 9).Draw(t, "edges")
		var held []delta.Root
		for _, s := range rapid.SliceOfN(states, 0, 2).Draw(t, "held") {
			held = append(held, root(s))
		}
		target := root(states.Draw(t, "target"))
		avoid := make(map[mesh.Edge]bool)
		for _, e := range offer {
			avoid[e] = rapid.IntRange(0, 3).Draw(t, "avoid") == 0
		}
		want, found := cheapest(append(slices.Clone(held), delta.Root{}), target, offer, avoid)
		for range 2 {
			got, err := PlanAround(held, target, offer, avoid, nil)
			if (err == nil) != found || (got == nil) != (want == nil) || !slices.Equal(got, want) {
				t.Fatalf("got %v, %v, want %v, %v", got, err, want, found)
			}
			slices.Reverse(offer) // the order must not matter
			slices.Reverse(held)
		}
	})
}

// cheapest tries every simple path.
func cheapest(held []delta.Root, target delta.Root, offer []mesh.Edge, avoid map[mesh.Edge]bool) (best []mesh.Edge, found bool) {
	if slices.Contains(held, target) {
		return nil, true
	}
	var walk func(at delta.Root, path []mesh.Edge)
	walk = func(at delta.Root, path []mesh.Edge) {
		if at == target && (!found || better(path, best, avoid)) {
			best, found = slices.Clone(path), true
		}
		for _, e := range offer {
			visited := slices.ContainsFunc(path, func(p mesh.Edge) bool { return p.Base == e.Target }) || e.Target == at
			if e.Base == at && !visited {
				walk(e.Target, append(path, e))
			}
		}
	}
	for _, r := range held {
		walk(r, nil)
	}
	return best, found
}

func better(a, b []mesh.Edge, avoid map[mesh.Edge]bool) bool {
	shun := func(path []mesh.Edge) (n int) {
		for _, e := range path {
			if avoid[e] {
				n++
			}
		}
		return n
	}
	if x, y := shun(a), shun(b); x != y {
		return x < y
	}
	if c := total(a).Cmp(total(b)); c != 0 {
		return c < 0
	}
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	for i := len(a) - 1; i >= 0; i-- {
		if c := compareEdges(a[i], b[i]); c != 0 {
			return c < 0
		}
	}
	return false
}

func total(path []mesh.Edge) *big.Int {
	sum := new(big.Int)
	for _, e := range path {
		sum.Add(sum, new(big.Int).SetUint64(e.Coded))
	}
	return sum
}

// TestPlanIgnoresHostileOffers feeds edges that make no sense but must do no harm.
func TestPlanIgnoresHostileOffers(t *testing.T) {
	loop := edge("a", "a", 0)
	back := edge("a", "0", 0)
	undefined := edge("0", "b", 5)
	undefined.Manifest = cid.Undef
	path, err := Plan([]delta.Root{root("a")}, root("b"), []mesh.Edge{loop, back, undefined, loop})
	if err != nil || len(path) != 1 || path[0] != undefined {
		t.Errorf("got %v, %v", path, err)
	}
}

func BenchmarkPlanLongChain(b *testing.B) {
	var edges []mesh.Edge
	for i := range 4096 {
		edges = append(edges, edge(fmt.Sprint("v", i), fmt.Sprint("v", i+1), uint64(i%7)))
	}
	for b.Loop() {
		if path, err := Plan([]delta.Root{root("v0")}, root("v4096"), edges); err != nil || len(path) != 4096 {
			b.Fatal(len(path), err)
		}
	}
}

// The worst that a catalogue may hold: as many ties as edges, all of them late.
func BenchmarkPlanChainAndFan(b *testing.B) {
	var edges []mesh.Edge
	for i := range 2048 {
		edges = append(edges, edge(fmt.Sprint("v", i), fmt.Sprint("v", i+1), 0), edge("v2048", fmt.Sprint("w", i), 0))
	}
	for b.Loop() {
		if _, err := Plan([]delta.Root{root("v0")}, root("elsewhere"), edges); !errors.Is(err, ErrNoPath) {
			b.Fatal(err)
		}
	}
}

// Ties are settled by looking at little: whole routes would cost memory, which, unlike time, can be tested.
func TestTiesCostLittle(t *testing.T) {
	const length = 256
	var edges []mesh.Edge
	for i := range length {
		edges = append(edges, edge(fmt.Sprint("v", i), fmt.Sprint("v", i+1), 0), edge(fmt.Sprint("v", length), fmt.Sprint("w", i), 0))
	}
	allocated := testing.AllocsPerRun(1, func() {
		if _, err := Plan([]delta.Root{root("v0")}, root("elsewhere"), edges); !errors.Is(err, ErrNoPath) {
			t.Error(err)
		}
	})
	if allocated > 10*2*length {
		t.Errorf("%.0f allocations for %d edges", allocated, 2*length)
	}
}
