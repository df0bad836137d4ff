package mesh

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/ipfs/go-cid"
)

// bitmap says which chunks of a manifest are held: chunk i is bit i%8 of byte i/8.
type bitmap []byte

func newBitmap(n int) bitmap { return make(bitmap, (n+7)/8) }

func (b bitmap) has(i int) bool { return b[i/8]>>(i%8)&1 != 0 }
func (b bitmap) set(i int)      { b[i/8] |= 1 << (i % 8) }
func (b bitmap) clear(i int)    { b[i/8] &^= 1 << (i % 8) }

func (b bitmap) count() int {
	n := 0
	for _, x := range b {
		n += bits.OnesCount8(x)
	}
	return n
}

// parseBitmap takes the bits of a message about n chunks. No bits at all say that nothing is held.
func parseBitmap(wire []byte, n int) (bitmap, error) {
	if len(wire) == 0 {
		return newBitmap(n), nil
	}
	if len(wire) != (n+7)/8 {
		return nil, fmt.Errorf("%w: bitmap of %d bytes for %d chunks", errMalformed, len(wire), n)
	}
	if n%8 != 0 && wire[len(wire)-1]>>(n%8) != 0 {
		return nil, fmt.Errorf("%w: bitmap with bits beyond %d chunks", errMalformed, n)
	}
	return bitmap(wire), nil
}

// subscription is what one peer wants to hear about one manifest.
type subscription struct {
	chunks []cid.Cid // nil while the manifest is not known here
	told   bitmap    // what the peer was told already
	fresh  []uint32  // what it is to be told next, in no order
}

// add notes that chunk i is here now.
func (s *subscription) add(i int) {
	if s.chunks != nil && !s.told.has(i) {
		s.told.set(i)
		s.fresh = append(s.fresh, uint32(i))
	}
}

// complete tells whether nothing is left to tell.
func (s *subscription) complete() bool {
	return s.chunks != nil && len(s.fresh) == 0 && s.told.count() == len(s.chunks)
}

// scan notes every chunk that is here by now, however it came.
func (s *subscription) scan(store Store) {
	for i, c := range s.chunks {
		if !s.told.has(i) && store.Has(c) {
			s.add(i)
		}
	}
}

// have returns all that is here, which the peer then has been told.
func (s *subscription) have(id cid.Cid) control {
	m := aboutManifest(kindHave, id)
	s.fresh = nil
	if s.told.count() > 0 {
		m.Bits = slices.Clone(s.told)
	}
	return m
}

// more returns what the peer has not been told yet, or as much of it as fits a message.
func (s *subscription) more(id cid.Cid) control {
	m := aboutManifest(kindMore, id)
	n := min(len(s.fresh), maxIndices)
	m.Indices, s.fresh = slices.Clone(s.fresh[:n]), s.fresh[n:]
	slices.Sort(m.Indices)
	return m
}
