package bench

import (
	"encoding/binary"
	"iter"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/delta/safetensors"
)

// layout says how the elements of a dtype lie in its bytes: little-endian words, in floats with an exponent below the sign.
// It is told anew here, because what measures the codec must not share its mistakes.
type layout struct {
	width    int  // bytes a word
	shift    uint // lowest bit of the exponent
	exponent uint // bits of the exponent; 0 for words that are no floats
}

var floats = map[string]layout{
	"F64":         {8, 52, 11},
	"F32":         {4, 23, 8},
	"C64":         {4, 23, 8}, // two F32
	"F16":         {2, 10, 5},
	"BF16":        {2, 7, 8},
	"F8_E4M3":     {1, 3, 4},
	"F8_E5M2":     {1, 2, 5},
	"F8_E4M3FNUZ": {1, 3, 4},
	"F8_E5M2FNUZ": {1, 2, 5},
}

// layoutOf returns the layout of a dtype. What is smaller than a byte, or unknown, is bytes.
func layoutOf(dtype string) layout {
	if l, ok := floats[dtype]; ok {
		return l
	}
	if bits, known := safetensors.BitWidth(dtype); known && bits > 8 {
		return layout{width: bits / 8}
	}
	return layout{width: 1}
}

// word returns word i of b.
func (l layout) word(b []byte, i int) uint64 {
	switch b = b[i*l.width:]; l.width {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	default:
		return binary.LittleEndian.Uint64(b)
	}
}

// words returns how many words b has.
func (l layout) words(b []byte) int { return len(b) / l.width }

// class returns the exponent of a word.
func (l layout) class(w uint64) int { return int(w >> l.shift & (1<<l.exponent - 1)) }

// step returns how far new is from old on the grid on which the patterns are ordered as the numbers that they stand for.
func (l layout) step(old, new uint64) int64 {
	unused := 64 - 8*uint(l.width)
	return int64((l.place(new)-l.place(old))<<unused) >> unused
}

// place returns where a word is on the grid.
func (l layout) place(w uint64) uint64 {
	sign := uint64(1) << (8*l.width - 1)
	switch {
	case l.exponent == 0:
		return w
	case w&sign != 0:
		return ^w
	default:
		return w | sign
	}
}

// changes yields the index of every word that differs.
func (l layout) changes(old, new []byte) iter.Seq[int] {
	return func(yield func(int) bool) {
		n, at := l.words(old), 0
		for ; at+8/l.width <= n; at += 8 / l.width { // eight bytes at a time, as most are equal
			if binary.LittleEndian.Uint64(old[at*l.width:]) == binary.LittleEndian.Uint64(new[at*l.width:]) {
				continue
			}
			if !l.yieldChanges(old, new, at, at+8/l.width, yield) {
				return
			}
		}
		l.yieldChanges(old, new, at, n, yield)
	}
}

func (l layout) yieldChanges(old, new []byte, from, to int, yield func(int) bool) bool {
	for i := from; i < to; i++ {
		if l.word(old, i) != l.word(new, i) && !yield(i) {
			return false
		}
	}
	return true
}

// pair is two states that follow each other.
type pair struct {
	old, new *delta.Memory
}

// tensors yields every tensor with the bytes that it has in both states.
func (p pair) tensors() iter.Seq[tensor] {
	return func(yield func(tensor) bool) {
		for i, t := range p.old.Schema().Tensors() {
			if !yield(tensor{t, layoutOf(t.DType), p.old.Tensor(i), p.new.Tensor(i)}) {
				return
			}
		}
	}
}

// tensor is one tensor in both states of a pair.
type tensor struct {
	delta.Tensor
	layout
	old, new []byte
}

// changed yields the index of every word that differs.
func (t tensor) changed() iter.Seq[int] { return t.changes(t.old, t.new) }

// value returns the bytes of word i of the new state.
func (t tensor) value(i int) []byte { return t.new[i*t.width : (i+1)*t.width] }
