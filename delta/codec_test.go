package delta

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ipfs/go-cid"
	"pgregory.net/rapid"
)

// newState returns a memory state with the given tensors and bytes.
func newState(t testing.TB, tensors []Tensor, data ...[]byte) *Memory {
	t.Helper()
	schema, err := NewSchema(tensors)
	if err != nil {
		t.Fatal(err)
	}
	m := NewMemory(schema)
	for i, tt := range tensors {
		for j, st := range schema.Tensors() {
			if st.Name == tt.Name {
				copy(m.tensors[j], data[i])
			}
		}
	}
	return m
}

func clone(m *Memory) *Memory {
	c := NewMemory(m.schema)
	for i, b := range m.tensors {
		copy(c.tensors[i], b)
	}
	return c
}

// roundTrip codes old → new, applies the code to old and demands equal bits and equal roots.
func roundTrip(t testing.TB, old, new *Memory) *Manifest {
	t.Helper()
	ctx := context.Background()
	spool, err := os.Create(filepath.Join(t.(interface{ TempDir() string }).TempDir(), "spool"))
	if err != nil {
		t.Fatal(err)
	}
	defer spool.Close()
	copied := NewMemory(new.schema)
	var chunks [][]byte
	var base State
	if old != nil {
		base = old
	}
	m, err := WriteEdge(ctx, spool, base, new, EncodeOptions{Copy: copied}, func(_ cid.Cid, b []byte) error {
		chunks = append(chunks, slices.Clone(b))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	again := mustRoundTripManifest(t, m)
	got := NewMemory(new.schema)
	if err := ApplyEdge(ctx, again, func(i int) ([]byte, error) { return chunks[i], nil }, new.schema, base, got, nil); err != nil {
		t.Fatal(err)
	}
	for i, b := range new.tensors {
		if !bytes.Equal(got.tensors[i], b) {
			t.Fatalf("tensor %q differs after decoding", new.schema.Tensors()[i].Name)
		}
		if !bytes.Equal(copied.tensors[i], b) {
			t.Fatalf("tensor %q differs in the copy", new.schema.Tensors()[i].Name)
		}
	}
	if want, err := RootOf(ctx, new, nil); err != nil || m.Target != want {
		t.Fatalf("target root %s, want %s (%v)", m.Target, want, err)
	}
	if old != nil {
		if want, _ := RootOf(ctx, old, nil); m.Base != want {
			t.Fatalf("base root %s, want %s", m.Base, want)
		}
	}
	return m
}

func mustRoundTripManifest(t testing.TB, m *Manifest) *Manifest {
	t.Helper()
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := DecodeManifest(b)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func u16s(w ...uint16) []byte {
	b := make([]byte, 0, 2*len(w))
	for _, v := range w {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	return b
}

func TestLittleEndian(t *testing.T) {
	if got := wordsOf[uint16](bytesOf([]uint64{0x0102030405060708})); got[0] != 0x0708 {
		t.Fatal("this machine is big-endian; the codec looks at little-endian words in place and needs a byte swap here")
	}
}

func TestEdgeCases(t *testing.T) {
	negZero, nan1, nan2, inf := uint16(0x8000), uint16(0x7fc1), uint16(0xffff), uint16(0x7f80)
	bf16 := func(n uint64) Tensor { return Tensor{Name: "w", DType: "BF16", Shape: []uint64{n}, Size: int64(2 * n)} }
	cases := map[string]struct {
		tensors  []Tensor
		old, new [][]byte
		changed  uint64
	}{
		"minus zero against zero": {[]Tensor{bf16(2)}, [][]byte{u16s(0, negZero)}, [][]byte{u16s(negZero, 0)}, 2},
		"NaN payloads":            {[]Tensor{bf16(3)}, [][]byte{u16s(nan1, nan2, nan1)}, [][]byte{u16s(nan2, nan1, nan1)}, 2},
		"infinities":              {[]Tensor{bf16(2)}, [][]byte{u16s(inf, inf)}, [][]byte{u16s(inf-1, inf|0x8000)}, 2},
		"none changed":            {[]Tensor{bf16(3)}, [][]byte{u16s(1, 2, 3)}, [][]byte{u16s(1, 2, 3)}, 0},
		"all changed":             {[]Tensor{bf16(3)}, [][]byte{u16s(1, 2, 3)}, [][]byte{u16s(9, 8, 7)}, 3},
		"0-d and empty": {
			[]Tensor{{Name: "a", DType: "F32", Size: 4}, {Name: "b", DType: "BF16", Shape: []uint64{0, 7}}, bf16(1)},
			[][]byte{{1, 2, 3, 4}, {}, u16s(5)}, [][]byte{{1, 2, 3, 5}, {}, u16s(5)}, 1,
		},
		"no tensors at all": {nil, nil, nil, 0},
		"unknown dtype and odd sizes": {
			[]Tensor{{Name: "q", DType: "NVFP4X", Shape: []uint64{3}, Size: 5}, {Name: "r", DType: "U8", Shape: []uint64{7}, Size: 7}, bf16(1)},
			[][]byte{{1, 2, 3, 4, 5}, {1, 2, 3, 4, 5, 6, 7}, u16s(1)},
			[][]byte{{1, 2, 0, 4, 5}, {1, 2, 3, 4, 5, 6, 0}, u16s(2)}, 3,
		},
		"two names with equal bytes": {
			[]Tensor{bf16(2), {Name: "x", DType: "BF16", Shape: []uint64{2}, Size: 4}},
			[][]byte{u16s(1, 2), u16s(1, 2)}, [][]byte{u16s(1, 3), u16s(1, 3)}, 2,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			old, new := newState(t, c.tensors, c.old...), newState(t, c.tensors, c.new...)
			if m := roundTrip(t, old, new); m.Changed != c.changed {
				t.Errorf("%d changed, want %d", m.Changed, c.changed)
			}
			roundTrip(t, nil, new)
		})
	}
}

var dtypes = []string{"BF16", "F16", "F32", "F64", "F8_E4M3", "F8_E5M2", "F8_E8M0", "I8", "U16", "I32", "I64", "BOOL", "C64", "ODD7"}

// drawTensors makes tensors of all dtypes, some empty, one of them longer than a block now and then.
func drawTensors(t *rapid.T) []Tensor {
	n := rapid.IntRange(0, 6).Draw(t, "tensors")
	tensors := make([]Tensor, n)
	for i := range tensors {
		dtype := rapid.SampledFrom(dtypes).Draw(t, "dtype")
		words := rapid.SampledFrom([]int{0, 1, 2, 3, 63, 64, 65, 1000, BlockWords - 1, BlockWords, BlockWords + 5}).Draw(t, "words")
		width := codingOf(dtype).width
		if dtype == "C64" {
			words -= words % 2
			tensors[i] = Tensor{DType: dtype, Shape: []uint64{uint64(words / 2)}, Size: int64(words * width)}
		} else {
			tensors[i] = Tensor{DType: dtype, Shape: []uint64{uint64(words)}, Size: int64(words * width)}
		}
		tensors[i].Name = string(rune('a' + i))
	}
	return tensors
}

// mutate changes words with probability density, mostly by a step on the grid.
func mutate(r *rand.Rand, b []byte, width int, density float64) {
	for i := 0; i+width <= len(b); i += width {
		if r.Float64() >= density {
			continue
		}
		if r.IntN(8) == 0 {
			b[i+r.IntN(width)] ^= byte(1 + r.IntN(255))
			continue
		}
		b[i]++
	}
}

func TestRoundTripProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tensors := drawTensors(rt)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		schema, err := NewSchema(tensors)
		if err != nil {
			rt.Fatal(err)
		}
		old := NewMemory(schema)
		for i := range old.tensors {
			for j := range old.tensors[i] {
				old.tensors[i][j] = byte(r.Uint32())
			}
		}
		new := clone(old)
		density := rapid.SampledFrom([]float64{0, 0.0001, 0.01, 0.3, 1}).Draw(rt, "density")
		for i, tt := range schema.Tensors() {
			mutate(r, new.tensors[i], codingOf(tt.DType).width, density)
		}
		roundTrip(struct {
			*testing.T
		}{t}, old, new)
	})
}

func TestGridIsABijection(t *testing.T) {
	for v := range 1 << 16 {
		if got := patternAt(gridOf(uint16(v))); got != uint16(v) {
			t.Fatalf("%#x comes back as %#x", v, got)
		}
	}
	if stepBetween(uint16(0x3f80), uint16(0x3f81), true) != 1 || stepBetween(uint16(0xbf80), uint16(0xbf81), true) != -1 {
		t.Error("a step away from zero must be up for positive and down for negative numbers")
	}
	if stepBetween(uint16(0x8000), uint16(0), true) != 1 {
		t.Error("-0 and +0 must be neighbours")
	}
}

func TestStepProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		check := func(step int64, width int) {
			in := cursor{appendStep(nil, step)}
			if got, err := readStep(&in, width); err != nil || got != step || len(in.rest) != 0 {
				t.Fatalf("step %d of width %d comes back as %d (%v)", step, width, got, err)
			}
		}
		float := rapid.Bool().Draw(t, "float")
		a, b := rapid.Uint64().Draw(t, "a"), rapid.Uint64().Draw(t, "b")
		if uint8(a) != uint8(b) {
			check(stepBetween(uint8(a), uint8(b), float), 1)
		}
		if a == b {
			return
		}
		s := stepBetween(a, b, float)
		check(s, 8)
		if stepFrom(a, s, float) != b {
			t.Fatalf("%x + %d is not %x", a, s, b)
		}
	})
	for _, s := range []int64{math.MinInt64, math.MaxInt64, 1, -1, -128, 127} {
		in := cursor{appendStep(nil, s)}
		if got, err := readStep(&in, 8); err != nil || got != s {
			t.Errorf("step %d comes back as %d (%v)", s, got, err)
		}
	}
	for _, s := range []int64{128, -129} {
		in := cursor{appendStep(nil, s)}
		if _, err := readStep(&in, 1); err == nil {
			t.Errorf("step %d does not fit a byte but was read", s)
		}
	}
}
