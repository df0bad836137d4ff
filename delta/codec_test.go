package delta

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"unsafe"

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
	m, _, err := WriteEdge(ctx, spool, base, new, EncodeOptions{Copy: copied}, func(_ cid.Cid, b []byte) error {
		chunks = append(chunks, slices.Clone(b))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	again := mustRoundTripManifest(t, m)
	got := NewMemory(new.schema)
	if _, err := ApplyEdge(ctx, again, func(i int) ([]byte, error) { return chunks[i], nil }, new.schema, base, got, DecodeOptions{}); err != nil {
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

func mustRoundTripManifest(t fataler, m *Manifest) *Manifest {
	t.Helper()
	e, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := DecodeManifest(e.Root, leavesOf(e))
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// newRand returns a source whose seed is drawn.
func newRand(t *rapid.T) *rand.Rand { return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 9)) }

// leavesOf returns a getter of the leaves of an encoded manifest.
func leavesOf(e EncodedManifest) func(cid.Cid) ([]byte, error) {
	return func(id cid.Cid) ([]byte, error) {
		for _, leaf := range e.Leaves {
			if Sum(leaf).Equals(id) {
				return leaf, nil
			}
		}
		return nil, fmt.Errorf("no leaf %s", id)
	}
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

// The first tile of a coding that changed may be raw: others with changes come before those of its coding then.
func TestRowsStandInTheOrderOfTheirFirstChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	tensors := []Tensor{tensorOf("a", "BF16", 2, 5000), tensorOf("b", "F32", 4, 5000), tensorOf("c", "BF16", 2, 5000)}
	old := newState(t, tensors, make([]byte, 10000), make([]byte, 20000), make([]byte, 10000))
	for _, b := range old.tensors {
		for i := range b {
			b[i] = byte(r.Uint32())
		}
	}
	new := clone(old)
	for i := range new.tensors[0] {
		new.tensors[0][i] = byte(r.Uint32())
	}
	mutate(r, new.tensors[1], 4, 0.01)
	mutate(r, new.tensors[2], 2, 0.01)
	roundTrip(t, old, new)
}

func TestGridIsABijection(t *testing.T) {
	for v := range 1 << 16 {
		if got := patternAt(gridOf(uint16(v))); got != uint16(v) {
			t.Fatalf("%#x comes back as %#x", v, got)
		}
	}
	if stepBetween(uint16(0x3f80), uint16(0x3f81), true) != 1 || stepBetween(uint16(0xbf80), uint16(0xbf81), true) != 0xffff {
		t.Error("a step away from zero must be up for positive and down for negative numbers")
	}
	if stepBetween(uint16(0x8000), uint16(0), true) != 1 {
		t.Error("-0 and +0 must be neighbours")
	}
}

// What split and join, symbols and open bits make of every step must be that step.
func TestSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		float := rapid.Bool().Draw(t, "float")
		a, b := rapid.Uint64().Draw(t, "a"), rapid.Uint64().Draw(t, "b")
		checkStep(t, uint8(a), uint8(b), float)
		checkStep(t, uint16(a), uint16(b), float)
		checkStep(t, uint32(a), uint32(b), float)
		checkStep(t, a, b, float)
	})
	for _, s := range []uint64{1, ^uint64(0), 1 << 63, 1<<63 - 1} {
		checkStep(t, 0, s, false)
	}
	for size, down := range map[uint64]uint64{127: 0, 128: 1} {
		if _, err := signed(uint8(size), down); err == nil {
			t.Errorf("a step of size %d does not fit a byte but was read", size+1)
		}
	}
}

// signed returns the step of some size that has a sign.
func signed[T word](size T, down uint64) (T, error) {
	var w bitWriter
	w.reset()
	w.put(down, 1)
	bits, err := newBitReader(append(w.finish(), make([]byte, bitSlack)...))
	if err != nil {
		return 0, err
	}
	steps := []T{size}
	err = takeSigns(&tansReader{bitReader: bits}, steps)
	return steps[0], err
}

func checkStep[T word](t interface{ Fatalf(string, ...any) }, a, b T, float bool) {
	if a == b {
		return
	}
	step := stepBetween(a, b, float)
	if stepFrom(a, step, float) != b {
		t.Fatalf("%x + %x is not %x", a, step, b)
	}
	size, down := split(step)
	symbol, open := stepSymbol(size)
	start, open2 := stepStart(symbol)
	if open != open2 || size < start || size-start >= 1<<open || symbol > lastStep(int(unsafe.Sizeof(a))) {
		t.Fatalf("a step of size %d has symbol %d, %d+%d bits", size+1, symbol, start, open)
	}
	if again, err := signed(T(size), down); err != nil || again != step {
		t.Fatalf("step %x comes back as %x (%v)", step, again, err)
	}
}

// restless is a state that somebody writes to: every read finds other words.
type restless struct {
	*Memory
	reads *atomic.Uint32
}

func (r restless) ReadAt(t int, p []byte, off int64) error {
	if err := r.Memory.ReadAt(t, p, off); err != nil {
		return err
	}
	for i := int(r.reads.Add(1)); i < len(p); i += 97 {
		p[i] ^= 1
	}
	return nil
}

// Whoever writes to a state while it is coded gets the code of what was hashed and copied, or that of no state at all; it is
// never one for the other.
func TestCodeIsOfWhatWasHashed(t *testing.T) {
	old := newState(t, []Tensor{tensorOf("w", "BF16", 2, BlockWords+5000)}, make([]byte, 2*(BlockWords+5000)))
	r := rand.New(rand.NewPCG(7, 1))
	for i := range old.tensors[0] {
		old.tensors[0][i] = byte(r.Uint32())
	}
	new := struct{ State }{restless{clone(old), new(atomic.Uint32)}} // which lends nothing
	copied := NewMemory(old.schema)
	var stream bytes.Buffer
	sum, err := Encode(t.Context(), &stream, old, new, EncodeOptions{Copy: copied})
	try(t, err)
	got, root, err := decodeBytes(stream.Bytes(), old)
	if err != nil || root != sum.Target || !bytes.Equal(got.tensors[0], copied.tensors[0]) || sum.Changed == 0 {
		t.Errorf("%d changes lead to %s, want %s (%v)", sum.Changed, root, sum.Target, err)
	}
}
