package policy

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// widen returns the value of a bf16 pattern; the pattern after the largest finite one counts as 2^128, which is
// where IEEE 754 puts infinity for rounding.
func widen(b uint16) float64 {
	if b&0x7fff == 0x7f80 {
		return math.Copysign(math.Ldexp(1, 128), float64(int16(b)))
	}
	return float64(math.Float32frombits(uint32(b) << 16))
}

// nearest rounds by comparing distances to both neighbours, as the standard words it.
func nearest(x float32) uint16 {
	if math.IsInf(float64(x), 0) {
		return uint16(math.Float32bits(x) >> 16)
	}
	inner := uint16(math.Float32bits(x) >> 16)
	outer := inner + 1
	below, above := math.Abs(float64(x)-widen(inner)), math.Abs(widen(outer)-float64(x))
	if below < above || below == above && inner&1 == 0 {
		return inner
	}
	return outer
}

func TestBF16TakesTheNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := math.Float32frombits(rapid.Uint32().Draw(t, "bits"))
		if x != x {
			t.Skip("NaN has no nearest")
		}
		if got, want := bf16(x), nearest(x); got != want {
			t.Fatalf("bf16(%g) = %#04x, want %#04x", x, got, want)
		}
	})
}

func TestBF16BreaksTiesToEven(t *testing.T) {
	for high := range uint32(1 << 16) {
		for _, low := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
			x := math.Float32frombits(high<<16 | low)
			if x != x {
				continue
			}
			if got, want := bf16(x), nearest(x); got != want {
				t.Fatalf("bf16(%#08x) = %#04x, want %#04x", high<<16|low, got, want)
			}
		}
	}
}

func TestBF16KeepsNaN(t *testing.T) {
	for _, bits := range []uint32{0x7f800001, 0x7fc00000, 0x7fffffff, 0xff800001, 0xffffffff} {
		got := bf16(math.Float32frombits(bits))
		if got&0x7f80 != 0x7f80 || got&0x7f == 0 || got>>15 != uint16(bits>>31) {
			t.Errorf("bf16(%#08x) = %#04x, not a NaN of the same sign", bits, got)
		}
	}
}
