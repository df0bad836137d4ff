package faults

import (
	"iter"
	"math/bits"
)

// pages is a set of page numbers.
type pages []uint64

func (s pages) has(i int64) bool { return i/64 < int64(len(s)) && s[i/64]&(1<<(i%64)) != 0 }

// add puts first up to past, without past, into the set and returns how many are new.
func (s *pages) add(first, past int64) (added int64) {
	for i := first; i < past; i++ {
		for i/64 >= int64(len(*s)) {
			*s = append(*s, 0)
		}
		if !s.has(i) {
			(*s)[i/64] |= 1 << (i % 64)
			added++
		}
	}
	return added
}

// cut removes from first on and returns how many were there.
func (s *pages) cut(first int64) (removed int64) {
	for i := range s.all() {
		if i >= first {
			(*s)[i/64] &^= 1 << (i % 64)
			removed++
		}
	}
	return removed
}

// all returns the numbers in order.
func (s pages) all() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for w, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(int64(w)*64 + int64(bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}
