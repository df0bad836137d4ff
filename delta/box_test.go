package delta

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// Gathering a box must give its elements in row-major order, from wherever it starts, and scattering undo it.
func TestBoxProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		shape := rapid.SampledFrom([][]uint64{{9}, {7, 9}, {3, 5, 6}, {2, 3, 4, 5}, {30, 5000}, {300, 40, 3}}).Draw(rt, "shape")
		width := rapid.SampledFrom([]int64{1, 2, 8}).Draw(rt, "width")
		start, extent := make([]uint64, len(shape)), make([]uint64, len(shape))
		for d, n := range shape {
			extent[d] = 1 + r.Uint64N(n)
			start[d] = r.Uint64N(n - extent[d] + 1)
		}
		tensor := tensorOf("w", "U8", 1, elements(shape)*uint64(width))
		m := newState(t, []Tensor{tensor}, nil)
		fillRandom(r, m.tensors[0])
		want := elementwise(m.tensors[0], shape, start, extent, int(width))

		b := newBox(shape, start, extent, width)
		off := r.IntN(len(want) + 1)
		got := make([]byte, len(want)-off)
		scratch := make([]byte, rapid.SampledFrom([]int{0, 100, spanBytes}).Draw(rt, "scratch"))
		if err := b.gather(m, 0, got, int64(off), scratch); err != nil || !bytes.Equal(got, want[off:]) {
			rt.Fatalf("box %v %v of %v: other bytes from byte %d on (%v)", start, extent, shape, off, err)
		}
		back := newState(t, []Tensor{tensor}, nil)
		if err := b.scatter(back, 0, want[off:], int64(off)); err != nil {
			rt.Fatal(err)
		}
		if got := elementwise(back.tensors[0], shape, start, extent, int(width)); !bytes.Equal(got[off:], want[off:]) {
			rt.Fatal("scattered bytes are not where they were gathered")
		}
	})
}

func elements(shape []uint64) uint64 {
	n := uint64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// elementwise copies the elements of a box one by one.
func elementwise(data []byte, shape, start, extent []uint64, width int) (out []byte) {
	for e := range elements(extent) {
		at, stride := uint64(0), uint64(width)
		for d := len(shape) - 1; d >= 0; d-- {
			at += (start[d] + e%extent[d]) * stride
			e /= extent[d]
			stride *= shape[d]
		}
		out = append(out, data[at:at+uint64(width)]...)
	}
	return out
}

// Narrow runs with small gaps are read together, wide gaps are not, and nothing is where others may write.
func TestReadsAreFew(t *testing.T) {
	for _, c := range []struct {
		shape, start, extent []uint64
		scratch              int
		reads                int
	}{
		{[]uint64{1000, 64}, []uint64{0, 8}, []uint64{1000, 8}, spanBytes, 1},
		{[]uint64{1000, 64}, []uint64{0, 8}, []uint64{1000, 8}, 0, 1000},
		{[]uint64{100, 20_000}, []uint64{0, 8}, []uint64{100, 8}, spanBytes, 100},
		{[]uint64{1000, 1024}, []uint64{0, 0}, []uint64{1000, 512}, spanBytes, 4},
	} {
		m := &countingState{State: newState(t, []Tensor{tensorOf("w", "U8", 1, c.shape...)}, nil)}
		p := make([]byte, elements(c.extent))
		if err := newBox(c.shape, c.start, c.extent, 1).gather(m, 0, p, 0, make([]byte, c.scratch)); err != nil || m.reads != c.reads {
			t.Errorf("%v of %v: %d reads, want %d (%v)", c.extent, c.shape, m.reads, c.reads, err)
		}
	}
}

type countingState struct {
	State
	reads int
}

func (s *countingState) ReadAt(t int, p []byte, off int64) error {
	s.reads++
	return s.State.ReadAt(t, p, off)
}
