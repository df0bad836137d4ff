package delta

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ipfs/go-cid"
	"pgregory.net/rapid"
)

// rung reads the outboard of e for some groups, nil for all, and takes chunks from those given, nil for all.
func (e edge) rung(t fataler, s *Schema, groups []int, chunks map[int]bool) Rung {
	t.Helper()
	o, err := ReadOutboard(e.Manifest, s, groups, e.block)
	if err != nil {
		t.Fatal(err)
	}
	return Rung{Manifest: e.Manifest, Outboard: o, Chunk: func(i int) ([]byte, error) {
		if chunks != nil && !chunks[i] {
			return nil, fmt.Errorf("chunk %d was not asked for", i)
		}
		return e.chunks[i], nil
	}}
}

// drawPath draws versions under one schema and the edges between them; the first state is nil where an anchor starts
// the path.
func drawPath(t *rapid.T, s *Schema) (base, target *Memory, path []edge) {
	r := newRand(t)
	first, state := randomState(r, s, 0.05)
	base = first
	if rapid.Bool().Draw(t, "anchor") {
		base = nil
	}
	path = append(path, writeEdge(t, &memorySpool{}, base, state))
	for range rapid.IntRange(0, 2).Draw(t, "edges") {
		next := clone(state)
		density := rapid.SampledFrom([]float64{0, 0.001, 0.3}).Draw(t, "density")
		for i, tt := range s.Tensors() {
			mutate(r, next.tensors[i], codingOf(tt.DType).width, density)
		}
		path = append(path, writeEdge(t, &memorySpool{}, state, next))
		state = next
	}
	return base, state, path
}

// groupsOf returns the groups that blocks lie in.
func groupsOf(s *Schema, blocks []int) []int {
	groups := map[int]bool{}
	for f := range frames(s) {
		for _, b := range blocks {
			if b >= f.block && b < f.end() {
				groups[f.group] = true
			}
		}
	}
	return append([]int{}, slices.Sorted(maps.Keys(groups))...)
}

// Random blocks over a random path come out as a full application gives them, from the chunks that were named alone,
// and nothing else is written.
func TestRebuildProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCut(t)
		base, target, path := drawPath(t, s)
		var blocks []int
		for b := range s.Blocks() {
			if rapid.IntRange(0, 3).Draw(t, "wanted") == 0 {
				blocks = append(blocks, b)
			}
		}
		groups := groupsOf(s, blocks)
		var rungs []Rung
		for _, e := range path {
			o, err := ReadOutboard(e.Manifest, s, groups, e.block)
			if err != nil {
				t.Fatal(err)
			}
			named, err := ChunksOf(e.Manifest, o, blocks)
			if err != nil || !slices.IsSorted(named) {
				t.Fatalf("chunks %v: %v", named, err)
			}
			chunks := map[int]bool{}
			for _, i := range named {
				chunks[i] = true
			}
			rungs = append(rungs, e.rung(t, s, groups, chunks))
		}
		blank := NewMemory(s)
		for _, b := range blank.tensors {
			fillRandom(newRand(t), b)
		}
		got, want := clone(blank), clone(blank)
		rand.Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
		var from State
		if base != nil {
			from = base
		}
		if err := Rebuild(context.Background(), s, blocks, from, rungs, got); err != nil {
			t.Fatal(err)
		}
		copyBlocks(t, want, target, blocks)
		for i := range want.tensors {
			if !bytes.Equal(got.tensors[i], want.tensors[i]) {
				t.Fatalf("tensor %d differs", i)
			}
		}
	})
}

func copyBlocks(t *rapid.T, to, from *Memory, blocks []int) {
	var buf frameBuffer
	for f := range frames(to.schema) {
		for i, tl := range f.tiles {
			if !slices.Contains(blocks, f.block+i) {
				continue
			}
			p := make([]byte, tl.size)
			if err := errors.Join(buf.loadTile(from, tl, p), storeTile(to, tl, p)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Repair, as a node does it: digests tell what is damaged, and just that is made anew.
func TestRepair(t *testing.T) {
	schema, err := NewSchema([]Tensor{tensorOf("w", "BF16", 2, 5*BlockWords/1000, 1000)})
	if err != nil {
		t.Fatal(err)
	}
	old, new := randomState(rand.New(rand.NewPCG(1, 2)), schema, 0.01)
	e := writeEdge(t, spoolFile(t), old, new)
	slot := clone(new)
	slot.tensors[0][2*BlockWords+5] ^= 4
	slot.tensors[0][8*BlockWords+5] ^= 4
	have, err := DigestsOf(t.Context(), slot, nil)
	if err != nil {
		t.Fatal(err)
	}
	rung := e.rung(t, schema, nil, nil)
	want, ok := rung.Outboard.Digests()
	damaged := have.Diff(want)
	if !ok || !slices.Equal(damaged, []int{1, 4}) {
		t.Fatalf("blocks %v are damaged, want 1 and 4", damaged)
	}
	if err := Rebuild(t.Context(), schema, damaged, old, []Rung{rung}, slot); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(slot.tensors[0], new.tensors[0]) {
		t.Error("the slot is still damaged")
	}
}

// What is not the promised block is never written.
func TestRebuildRefuses(t *testing.T) {
	old, new := goldenStates(t)
	s := old.schema
	e, anchor := writeEdge(t, spoolFile(t), old, new), writeEdge(t, spoolFile(t), nil, new)
	rung, last := e.rung(t, s, nil, nil), s.Blocks()-1
	tampered := rung
	tampered.Chunk = func(i int) ([]byte, error) {
		b := bytes.Clone(e.chunks[i])
		b[len(b)-1] ^= 1
		return b, nil
	}
	mixed := rung
	mixed.Outboard = anchor.rung(t, s, nil, nil).Outboard
	wrong := clone(old)
	wrong.tensors[0][3] ^= 1
	small, _ := smallPair(t)
	for name, c := range map[string]struct {
		blocks []int
		base   State
		path   []Rung
		want   string
	}{
		"no path":             {[]int{0}, old, nil, "no edge"},
		"damaged base":        {[]int{1}, wrong, []Rung{rung}, ErrWrongTarget.Error()},
		"tampered chunk":      {[]int{last}, old, []Rung{tampered}, ErrMismatch.Error()},
		"block beyond":        {[]int{last + 1}, old, []Rung{rung}, "but there are"},
		"block before":        {[]int{-1}, old, []Rung{rung}, "but there are"},
		"no base":             {[]int{0}, nil, []Rung{rung}, "do not belong together"},
		"base for an anchor":  {[]int{0}, old, []Rung{anchor.rung(t, s, nil, nil)}, "do not belong together"},
		"a gap":               {[]int{0}, old, []Rung{rung, rung}, "does not start where"},
		"another schema":      {[]int{0}, small, []Rung{rung}, "another schema"},
		"no outboard":         {[]int{0}, old, []Rung{{Manifest: e.Manifest, Chunk: e.chunk}}, "without its outboard"},
		"outboard not read":   {[]int{0}, old, []Rung{e.rung(t, s, []int{1}, nil)}, "was not read"},
		"outboard of another": {[]int{1}, old, []Rung{mixed}, ""},
	} {
		got := NewMemory(s)
		err := Rebuild(t.Context(), s, c.blocks, c.base, c.path, got)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
		if name == "damaged base" && !bytes.Equal(got.tensors[0], make([]byte, len(got.tensors[0]))) {
			t.Errorf("%s: something was written", name)
		}
	}
}

// The receiver of an edge has its outboard in hand, and whoever asks for one group gets along with its blocks.
func TestOutboardProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCut(t)
		base, target, path := drawPath(t, s)
		e := path[0]
		if len(path) > 1 {
			target = NewMemory(s)
		}
		var from State
		if base != nil {
			from = base
		}
		d, err := ApplyEdge(context.Background(), e.Manifest, e.chunk, s, from, target, DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		blocks, err := d.Outboard(s).Blocks(e.Manifest)
		if err != nil || len(blocks) != len(e.Outboard) {
			t.Fatalf("the receiver has another outboard: %v", err)
		}
		g := rapid.IntRange(0, len(s.Groups())-1).Draw(t, "group")
		o, err := ReadOutboard(e.Manifest, s, []int{g}, e.block)
		if err != nil {
			t.Fatal(err)
		}
		if _, whole := o.Digests(); whole != (len(s.Groups()) == 1) {
			t.Fatalf("an outboard of one of %d groups says it is whole: %v", len(s.Groups()), whole)
		}
		i := rapid.IntRange(0, len(e.Outboard)-1).Draw(t, "spoilt")
		bad := func(id cid.Cid) ([]byte, error) {
			b, err := e.block(id)
			if id.Equals(e.Outboard[i]) {
				b = append(bytes.Clone(b[:len(b)-1]), b[len(b)-1]^1)
			}
			return b, err
		}
		if len(e.Outboard) > 0 {
			if _, err := ReadOutboard(e.Manifest, s, nil, bad); !errors.Is(err, ErrMismatch) {
				t.Fatalf("a damaged outboard gave %v", err)
			}
		}
	})
}

// A signed outboard that does not fold to the signed root is refused, whoever made it.
func TestForgedOutboards(t *testing.T) {
	old, new := goldenStates(t)
	e := writeEdge(t, spoolFile(t), old, new)
	digests, frames := e.blocks[e.Outboard[0]], e.blocks[e.Outboard[1]]
	for name, c := range map[string]struct {
		digests, frames []byte
		spoil           func(m *Manifest)
	}{
		"group":        {flip(digests, 0), frames, nil},
		"block":        {flip(digests, len(digests)-1), frames, nil},
		"frame":        {digests, flip(frames, 0), nil},
		"endless":      {digests, flip(frames, len(frames)-1), nil},
		"short":        {digests[:len(digests)-16], frames, nil},
		"no blocks":    {digests, frames, func(m *Manifest) { m.Outboard = nil }},
		"other groups": {digests, frames, func(m *Manifest) { m.Groups, m.parts = nil, nil }},
		"target":       {digests, frames, func(m *Manifest) { m.Target[0] ^= 1 }},
	} {
		m := *e.Manifest
		m.Outboard = []cid.Cid{Sum(c.digests), Sum(c.frames)}
		if c.spoil != nil {
			c.spoil(&m)
		}
		_, err := ReadOutboard(&m, new.schema, nil, func(id cid.Cid) ([]byte, error) {
			if id.Equals(Sum(c.digests)) {
				return c.digests, nil
			}
			return c.frames, nil
		})
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A schema may claim more blocks than there is time to count; the manifest beside it does not name as many.
func TestOutboardOfAnEndlessSchema(t *testing.T) {
	s, err := NewSchema([]Tensor{{Name: "w", DType: "ODD7", Size: 1 << 62}})
	if err != nil {
		t.Fatal(err)
	}
	m := manyChunks(t, 1)
	m.Schema, m.Outboard = s.ID(), m.Chunks
	if _, err := ReadOutboard(m, s, nil, func(cid.Cid) ([]byte, error) { return nil, nil }); err == nil {
		t.Error("accepted")
	}
}

func flip(b []byte, i int) []byte {
	b = bytes.Clone(b)
	b[i] ^= 1
	return b
}

func FuzzOutboard(f *testing.F) {
	old, new := goldenStates(f)
	e := writeEdge(f, spoolFile(f), old, new)
	f.Add(e.blocks[e.Outboard[0]], e.blocks[e.Outboard[1]])
	f.Fuzz(func(t *testing.T, digests, lengths []byte) {
		m := *e.Manifest
		m.Outboard = []cid.Cid{Sum(digests), Sum(lengths)}
		o, err := ReadOutboard(&m, new.schema, nil, func(id cid.Cid) ([]byte, error) {
			if id.Equals(Sum(digests)) {
				return digests, nil
			}
			return lengths, nil
		})
		if err != nil {
			return
		}
		if again, err := o.Blocks(&m); err != nil || !bytes.Equal(bytes.Join(again, nil), slices.Concat(digests, lengths)) {
			t.Fatalf("read but written differently: %v", err)
		}
		rung := Rung{Manifest: &m, Outboard: o, Chunk: e.chunk}
		_ = Rebuild(context.Background(), new.schema, []int{0, 2}, old, []Rung{rung}, NewMemory(new.schema))
	})
}
