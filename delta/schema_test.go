package delta

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// tensorOf returns a tensor of elements of width bytes.
func tensorOf(name, dtype string, width int, shape ...uint64) Tensor {
	size := uint64(width)
	for _, n := range shape {
		size *= n
	}
	return Tensor{Name: name, DType: dtype, Shape: shape, Size: int64(size)}
}

// halve cuts a box in two along a random dimension, and those again, until they are few elements or chance ends it.
func halve(r *rand.Rand, start, extent []uint64, left int) []Cut {
	d := r.IntN(len(extent))
	if left == 0 || extent[d] < 2 || r.IntN(4) == 0 {
		return []Cut{{Start: start, Extent: extent, Group: fmt.Sprint("g", r.IntN(3))}}
	}
	at := 1 + r.Uint64N(extent[d]-1)
	near, far, begin := slices.Clone(extent), slices.Clone(extent), slices.Clone(start)
	near[d], far[d] = at, extent[d]-at
	begin[d] += at
	return append(halve(r, start, near, left-1), halve(r, begin, far, left-1)...)
}

// randomCutting cuts tensors of up to maxCutDims dimensions into boxes, and spreads all over a few groups.
func randomCutting(r *rand.Rand) Cutting {
	return func(_ string, t Tensor) []Cut {
		if len(t.Shape) == 0 || len(t.Shape) > maxCutDims || slices.Contains(t.Shape, 0) || elementBytes(t.DType) == 0 {
			return []Cut{{Group: fmt.Sprint("g", r.IntN(3))}}
		}
		return halve(r, make([]uint64, len(t.Shape)), t.Shape, 4)
	}
}

// drawCut draws a schema of a few states with tensors of several dimensions, cut at random.
func drawCut(t *rapid.T) *Schema {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "cutting"), 2))
	names := []string{""}
	if rapid.Bool().Draw(t, "named") {
		names = []string{"draft", "policy"}
	}
	var states []StateTensors
	for _, name := range names {
		st := StateTensors{Name: name}
		for i := range rapid.IntRange(0, 3).Draw(t, "tensors") {
			dtype := rapid.SampledFrom([]string{"BF16", "F32", "I8", "I64", "C64", "F4", "ODD7"}).Draw(t, "dtype")
			width := max(int(elementBytes(dtype)), 1)
			shape := rapid.SampledFrom([][]uint64{{}, {0, 3}, {7}, {270_000}, {40, 50}, {2, 140_000}, {900, 70}, {4, 5, 6, 7}, {1, 64, 1, 2000}, {2, 1, 2, 1, 2}}).Draw(t, "shape")
			tt := tensorOf(fmt.Sprint("t", i), dtype, width, shape...)
			if dtype == "F4" {
				tt = tensorOf(tt.Name, dtype, 1, 16)
				tt.Shape = []uint64{32}
			}
			st.Tensors = append(st.Tensors, tt)
		}
		states = append(states, st)
	}
	s, err := NewSchemaOf(states, randomCutting(r))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// randomState fills a state under s, and another that differs from it here and there.
func randomState(r *rand.Rand, s *Schema, density float64) (old, new *Memory) {
	old = NewMemory(s)
	for i := range old.tensors {
		fillRandom(r, old.tensors[i])
	}
	new = clone(old)
	for i, tt := range s.Tensors() {
		mutate(r, new.tensors[i], codingOf(tt.DType).width, density)
	}
	return old, new
}

func fillRandom(r *rand.Rand, b []byte) {
	for len(b) >= 8 {
		v := r.Uint64()
		for i := range 8 {
			b[i] = byte(v >> (8 * i))
		}
		b = b[8:]
	}
	for i := range b {
		b[i] = byte(r.Uint32())
	}
}

func TestAnyCuttingRoundTrips(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawCut(rt)
		again, err := DecodeSchema(s.Encode())
		if err != nil {
			rt.Fatal(err)
		}
		if len(s.pieces) > 0 && !reflect.DeepEqual(again.pieces, s.pieces) || !slices.Equal(again.states, s.states) || !slices.Equal(again.groups, s.groups) {
			rt.Fatalf("pieces come back as\n%v\n%v", again.pieces, s.pieces)
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		old, new := randomState(r, s, rapid.SampledFrom([]float64{0, 0.01, 0.5}).Draw(rt, "density"))
		old.schema = again
		roundTrip(struct{ *testing.T }{t}, old, new)
		roundTrip(struct{ *testing.T }{t}, nil, new)
	})
}

// Every byte of a state is in one tile, and frames keep to their bounds and groups.
func TestTilesCoverOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawCut(rt)
		m := NewMemory(s)
		blocks, number := 0, 0
		for f := range frames(s) {
			if f.block != blocks || f.number != number {
				rt.Fatalf("frame %d begins at block %d, want %d and %d", f.number, f.block, number, blocks)
			}
			if f.dense() > frameBytes || len(f.tiles) > frameTiles {
				rt.Fatalf("a frame of %d bytes in %d tiles", f.dense(), len(f.tiles))
			}
			first, end := s.GroupBlocks(f.group)
			if f.block < first || f.end() > end {
				rt.Fatalf("blocks %d to %d, but group %d has %d to %d", f.block, f.end(), f.group, first, end)
			}
			for _, tl := range f.tiles {
				if tl.words() > BlockWords || tl.size == 0 {
					rt.Fatalf("a tile of %d words", tl.words())
				}
				if err := storeTile(counter{m}, tl, make([]byte, tl.size)); err != nil {
					rt.Fatal(err)
				}
			}
			blocks, number = f.end(), number+1
		}
		if blocks != s.Blocks() {
			rt.Fatalf("%d blocks, want %d", blocks, s.Blocks())
		}
		for i, b := range m.tensors {
			if n := bytes.Count(b, []byte{1}); n != len(b) {
				rt.Fatalf("tensor %d: %d of %d bytes are written once", i, n, len(b))
			}
		}
	})
}

// counter counts how often a byte is written.
type counter struct{ m *Memory }

func (c counter) WriteAt(t int, p []byte, off int64) error {
	for i := range p {
		c.m.tensors[t][off+int64(i)]++
	}
	return nil
}

// checkTiling must agree with counting how often each element is covered.
func TestTilingAgreesWithCounting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SampledFrom([][]uint64{{5}, {3, 4}, {2, 3, 3}}).Draw(t, "shape")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		var boxes []Piece
		for _, c := range halve(r, make([]uint64, len(shape)), shape, 3) {
			boxes = append(boxes, Piece{Start: c.Start, Extent: slices.Clone(c.Extent)})
		}
		for range rapid.IntRange(0, 2).Draw(t, "spoilt") {
			b, d := &boxes[r.IntN(len(boxes))], r.IntN(len(shape))
			switch r.IntN(4) {
			case 0:
				b.Start = slices.Clone(b.Start)
				b.Start[d] = r.Uint64N(shape[d] + 1)
			case 1:
				b.Extent[d] = r.Uint64N(shape[d] + 1)
			case 2:
				boxes = slices.Delete(boxes, 0, 1)
				if len(boxes) == 0 {
					return
				}
			default:
				boxes = append(boxes, *b)
			}
		}
		slices.SortFunc(boxes, func(a, b Piece) int { return slices.Compare(a.Start, b.Start) })
		if got, want := checkTiling(shape, boxes) == nil, coversOnce(shape, boxes); got != want {
			t.Fatalf("%v in boxes %v: tiling %v, want %v", shape, boxes, got, want)
		}
	})
}

func coversOnce(shape []uint64, boxes []Piece) bool {
	total := uint64(1)
	for _, n := range shape {
		total *= n
	}
	for e := range total {
		covered := 0
		for _, b := range boxes {
			in, rest := true, e
			for d := len(shape) - 1; d >= 0; d-- {
				x := rest % shape[d]
				rest /= shape[d]
				in = in && x >= b.Start[d] && x < b.Start[d]+b.Extent[d]
			}
			if in {
				covered++
			}
		}
		if covered != 1 {
			return false
		}
	}
	return !slices.ContainsFunc(boxes, func(b Piece) bool {
		for d := range shape {
			if b.Extent[d] == 0 || b.Start[d]+b.Extent[d] > shape[d] {
				return true
			}
		}
		return false
	})
}

func cutInto(cuts ...Cut) Cutting { return func(string, Tensor) []Cut { return cuts } }

func boxOf(numbers ...uint64) Cut {
	n := len(numbers) / 2
	return Cut{Start: numbers[:n], Extent: numbers[n:]}
}

func TestCuttings(t *testing.T) {
	square, odd := tensorOf("w", "BF16", 2, 3, 3), Tensor{Name: "w", DType: "ODD7", Shape: []uint64{3, 3}, Size: 9}
	pinwheel := cutInto(boxOf(0, 0, 1, 2), boxOf(0, 2, 2, 1), boxOf(1, 0, 2, 1), boxOf(1, 1, 1, 1), boxOf(2, 1, 1, 2))
	for name, c := range map[string]struct {
		t    Tensor
		cut  Cutting
		want string // part of the error, empty for none
	}{
		"pinwheel":            {square, pinwheel, ""},
		"rows":                {square, cutInto(boxOf(0, 0, 1, 3), boxOf(1, 0, 2, 3)), ""},
		"columns":             {square, cutInto(boxOf(0, 0, 3, 1), boxOf(0, 1, 3, 2)), ""},
		"out of order":        {square, cutInto(boxOf(1, 0, 2, 3), boxOf(0, 0, 1, 3)), ""},
		"the whole as a box":  {square, cutInto(boxOf(0, 0, 3, 3)), ""},
		"unknown dtype whole": {odd, cutInto(Cut{Group: "x"}), ""},
		"a hole":              {square, cutInto(boxOf(0, 0, 1, 3), boxOf(1, 0, 1, 3)), "overlap or leave a hole"},
		"an overlap":          {square, cutInto(boxOf(0, 0, 2, 3), boxOf(1, 0, 2, 3)), "overlap or leave a hole"},
		"hole and overlap":    {square, cutInto(boxOf(0, 0, 2, 3), boxOf(1, 0, 1, 3)), "overlap or leave a hole"},
		"twice the same":      {square, cutInto(boxOf(0, 0, 3, 3), boxOf(0, 0, 3, 3)), "begins where another does"},
		"sticks out":          {square, cutInto(boxOf(0, 0, 1, 3), boxOf(1, 0, 3, 3)), "sticks out"},
		"overflow":            {square, cutInto(boxOf(0, 0, 1, 3), boxOf(1, 0, 1<<64-1, 3)), "sticks out"},
		"empty box":           {square, cutInto(boxOf(0, 0, 3, 3), boxOf(1, 0, 0, 3)), "empty box"},
		"one box, not all":    {square, cutInto(boxOf(0, 0, 2, 3)), "not the whole"},
		"too few dimensions":  {square, cutInto(boxOf(0, 3), boxOf(1, 3)), "dimensions"},
		"unknown dtype":       {odd, cutInto(boxOf(0, 0, 1, 3), boxOf(1, 0, 2, 3)), "cannot be cut"},
		"less than a byte": {
			Tensor{Name: "w", DType: "F4", Shape: []uint64{4, 2}, Size: 4}, cutInto(boxOf(0, 0, 2, 2), boxOf(2, 0, 2, 2)), "cannot be cut",
		},
		"endless group": {square, cutInto(Cut{Group: strings.Repeat("g", 2000)}), "name too long"},
	} {
		s, err := NewSchemaOf([]StateTensors{{Tensors: []Tensor{c.t}}}, c.cut)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if _, err := DecodeSchema(s.Encode()); err != nil {
				t.Errorf("%s: decode: %v", name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

func TestStates(t *testing.T) {
	w := tensorOf("w", "U8", 1, 3)
	s, err := NewSchemaOf([]StateTensors{{"policy", []Tensor{w}}, {"draft", []Tensor{tensorOf("v", "U8", 1, 2), w}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.States(), s.StateOf(0), s.StateOf(1), s.StateOf(2)); got != "[{draft 0 2} {policy 2 1}] 0 0 1" {
		t.Errorf("states %s", got)
	}
	for name, states := range map[string][]StateTensors{
		"none":              nil,
		"doubled":           {{"a", nil}, {"a", nil}},
		"unnamed of two":    {{"", nil}, {"a", nil}},
		"leads out":         {{"../a", nil}},
		"hidden":            {{".a", nil}},
		"doubled in one":    {{"a", []Tensor{w, w}}},
		"control character": {{"a\n", nil}},
	} {
		if _, err := NewSchemaOf(states, nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// Whole tensors in one group cost nothing beside their own description.
func TestDefaultSchemaIsSmall(t *testing.T) {
	var tensors []Tensor
	for i := range 1000 {
		tensors = append(tensors, tensorOf(fmt.Sprintf("t%04d", i), "BF16", 2, 4))
	}
	s, err := NewSchema(tensors)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(s.Encode()); got != 7+1000*15 {
		t.Errorf("%d bytes", got)
	}
	layers, err := NewSchemaOf([]StateTensors{{Tensors: tensors}}, func(_ string, t Tensor) []Cut { return []Cut{{Group: t.Name[:3]}} })
	if err != nil || len(layers.Encode()) > len(s.Encode())+1100 {
		t.Errorf("groups take %d bytes (%v)", len(layers.Encode())-len(s.Encode()), err)
	}
}

func TestGroupByLayer(t *testing.T) {
	for name, want := range map[string]string{
		"model.layers.12.self_attn.q_proj.weight":     "model.layers.12",
		"model.layers.3.mlp.experts.17.down.weight":   "model.layers.3.mlp.experts.17",
		"model.layers.3.mlp.shared_experts.up.weight": "model.layers.3",
		"transformer.h.0.attn.c_attn.bias":            "transformer.h.0",
		"visual.blocks.31.norm1.weight":               "visual.blocks.31",
		"model.embed_tokens.weight":                   "",
		"lm_head.weight":                              "",
		"layers":                                      "",
		"layers.":                                     "",
		"layers.x.weight":                             "",
		"layers.7":                                    "layers.7",
		"":                                            "",
		"model.layers.1.conv.layers.2.weight":         "model.layers.1",
	} {
		if got := GroupByLayer("", Tensor{Name: name}); len(got) != 1 || got[0].Group != want || got[0].Start != nil {
			t.Errorf("%s: %+v, want group %q", name, got, want)
		}
	}
	if got := GroupByLayer("draft", Tensor{Name: "layers.7.w"})[0].Group; got != "draft/layers.7" {
		t.Errorf("in a named state: %q", got)
	}
}

// A hostile record must be refused without taking much more memory than it has bytes.
func TestHostileSchemas(t *testing.T) {
	tensor := tensorRecord{Name: "w", DType: "U8", Shape: []uint64{4, 4}, Bytes: 16}
	for name, r := range map[string]schemaRecord{
		"cut of no tensor":        {Cuts: []byte{1, 2}},
		"one box":                 {Cuts: []byte{0, 1, 0, 4, 0, 4}},
		"cut off":                 {Cuts: []byte{0, 2, 0, 2, 0}},
		"more boxes than bytes":   {Cuts: []byte{0, 0xff, 0x7f}},
		"long number":             {Cuts: []byte{0, 2, 0, 0x82, 0, 0, 4, 2, 2, 0, 4}},
		"members of one group":    {Members: []byte{0}},
		"member of no group":      {Groups: []string{"a", "b"}, Members: []byte{2}},
		"too few members":         {Groups: []string{"a", "b"}},
		"an unused group":         {Groups: []string{"a", "b"}, Members: []byte{0}},
		"the default spelt out":   {Groups: []string{""}},
		"the state spelt out":     {States: []stateRecord{{Tensors: 1}}},
		"more tensors than there": {States: []stateRecord{{Name: "a", Tensors: 1 << 63}}},
		"fewer tensors":           {States: []stateRecord{{Name: "a", Tensors: 0}}},
	} {
		r.Version, r.Tensors = schemaVersion, []tensorRecord{tensor}
		b, err := MarshalRecord(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeSchema(b); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	old, _ := MarshalRecord(schemaRecord{Version: 1, Tensors: []tensorRecord{tensor}})
	if _, err := DecodeSchema(old); err == nil || !strings.Contains(err.Error(), "upgrade") {
		t.Errorf("a schema of format 1 gave %v, want a hint to upgrade", err)
	}
}
