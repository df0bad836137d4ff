package bench

import (
	"encoding/binary"
	"math"
	"math/big"
	"testing"

	"github.com/sparsecast/sparsecast/delta"
	"pgregory.net/rapid"
)

// pairOf returns the states of one tensor that have just these bytes.
func pairOf(t testing.TB, dtype string, elements int, old, new []byte) pair {
	t.Helper()
	schema, err := delta.NewSchema([]delta.Tensor{{Name: "w", DType: dtype, Shape: []uint64{uint64(elements)}, Size: int64(len(old))}})
	if err != nil {
		t.Fatal(err)
	}
	p := pair{delta.NewMemory(schema), delta.NewMemory(schema)}
	copy(p.old.Tensor(0), old)
	copy(p.new.Tensor(0), new)
	return p
}

func bf16s(words ...uint16) (b []byte) {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint16(b, w)
	}
	return b
}

// TestBoundByHand has two exponents. Of the four words of one, two go up by a step: 4·H(1/2) = 4 bits, and no more for
// equal steps. Of the two of the other, both change, by other steps, across zero and up: 0 bits, and 1 for each step.
// The two that stay are of a third.
func TestBoundByHand(t *testing.T) {
	old := bf16s(0x3f80, 0x3f81, 0x3f82, 0xbf83, 0x0001, 0x8001, 0x4200, 0x4201)
	new := bf16s(0x3f81, 0x3f81, 0x3f82, 0xbf82, 0x8001, 0x8000, 0x4200, 0x4201)
	if got := bound(pairOf(t, "BF16", 8, old, new)); got != 6.0/8 {
		t.Errorf("%v bits, want 6", 8*got)
	}
	// As integers they are of one class, of 8 words with 4 changes, that go by 1, -1 and 0x8000, -1: 8 + 4·1.5 bits.
	if got := bound(pairOf(t, "U16", 8, old, new)); got != 14.0/8 {
		t.Errorf("%v bits as integers, want 14", 8*got)
	}
}

func TestSteps(t *testing.T) {
	for _, c := range []struct {
		dtype    string
		old, new uint64
		want     int64
	}{
		{"BF16", 0x0000, 0x0001, 1},
		{"BF16", 0x0000, 0x8000, -1}, // from +0 to -0
		{"BF16", 0x8000, 0x8001, -1},
		{"BF16", 0x7fff, 0xffff, 1}, // from one end to the other, around
		{"F8_E4M3", 0x81, 0x01, 3},
		{"F32", 0x3f800000, 0x3f7fffff, -1},
		{"F64", 0x8000000000000001, 0x0000000000000000, 2},
		{"I64", 0, ^uint64(0), -1},
		{"U8", 0x7f, 0x80, 1},
		{"F8_E8M0", 0x80, 0x7f, -1},
	} {
		if got := layoutOf(c.dtype).step(c.old, c.new); got != c.want {
			t.Errorf("%s from %x to %x: step %d, want %d", c.dtype, c.old, c.new, got, c.want)
		}
	}
}

// TestBoundIsSlowlyRight compares the bound with one that is computed for each element by itself, on rational chances.
func TestBoundIsSlowlyRight(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := anyPair(t, rt)
		var want float64
		for tensor := range p.tensors() {
			want += slowBound(tensor) / 8
		}
		if got := bound(p); math.Abs(got-want) > 1e-9*max(1, want) {
			rt.Errorf("bound %v bytes, slowly %v", got, want)
		}
	})
}

// slowBound adds up, for every word, the bits of whether it changed among all of its exponent, and of the step that it took
// among all that changed. It finds exponents and steps by arithmetic on numbers of any size.
func slowBound(t tensor) (bits float64) {
	type seen struct{ class, step string }
	var all []seen
	for at := 0; at < len(t.old); at += t.width {
		old, new := number(t.old[at:at+t.width]), number(t.new[at:at+t.width])
		s := seen{class: "all"}
		if t.exponent > 0 {
			e := bigInt().Rsh(old, t.shift)
			s.class = e.Mod(e, bigInt().Lsh(big.NewInt(1), t.exponent)).String()
		}
		if old.Cmp(new) != 0 {
			d := bigInt().Sub(ordered(new, t.layout), ordered(old, t.layout))
			d.Mod(d, bigInt().Lsh(big.NewInt(1), uint(8*t.width)))
			s.step = d.String()
		}
		all = append(all, s)
	}
	count := func(like func(seen) bool) (n float64) {
		for _, s := range all {
			if like(s) {
				n++
			}
		}
		return n
	}
	for _, s := range all {
		class := count(func(o seen) bool { return o.class == s.class })
		alike := count(func(o seen) bool { return o.class == s.class && (o.step == "") == (s.step == "") })
		bits -= math.Log2(alike / class)
		if s.step != "" {
			bits -= math.Log2(count(func(o seen) bool { return o == s }) / alike)
		}
	}
	return bits
}

func bigInt() *big.Int { return new(big.Int) }

func number(b []byte) *big.Int {
	n := bigInt()
	for i := len(b) - 1; i >= 0; i-- {
		n.Or(n.Lsh(n, 8), big.NewInt(int64(b[i])))
	}
	return n
}

// ordered numbers patterns from the most negative one on.
func ordered(n *big.Int, l layout) *big.Int {
	half := bigInt().Lsh(big.NewInt(1), uint(8*l.width-1))
	switch {
	case l.exponent == 0:
		return n
	case n.Cmp(half) >= 0: // negative: the larger the pattern, the smaller the number
		return bigInt().Sub(bigInt().Sub(bigInt().Lsh(half, 1), big.NewInt(1)), n)
	default:
		return bigInt().Add(half, n)
	}
}
