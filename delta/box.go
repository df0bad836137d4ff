package delta

import "slices"

const (
	// gapBytes is the longest gap between two runs that is read along with them: copying that much costs about
	// as much as another call of the system.
	gapBytes = 4 << 10
	// spanBytes bounds what is read at once for that.
	spanBytes = 256 << 10
)

// box says where the bytes of a piece lie in its tensor: in runs of one length, one after the other as the outer
// dimensions count.
type box struct {
	first int64  // offset in the tensor of the first byte
	run   int64  // bytes that lie together
	outer []step // dimensions outside a run, the outermost first; none where the piece is one run
}

// step is a dimension of a box: how often it steps, and the bytes from one to the next.
type step struct{ count, stride int64 }

// newBox finds the runs of a box of a tensor whose elements are width bytes.
func newBox(shape, start, extent []uint64, width int64) *box {
	b := &box{run: width}
	stride, together := width, true
	for d := len(shape) - 1; d >= 0; d-- {
		n := int64(extent[d])
		b.first += int64(start[d]) * stride
		if together {
			b.run *= n
		} else if n > 1 {
			b.outer = append(b.outer, step{n, stride})
		}
		together = together && extent[d] == shape[d]
		stride *= int64(shape[d])
	}
	slices.Reverse(b.outer)
	return b
}

// place returns where byte off of the piece lies in the tensor, and how many bytes lie there together.
func (b *box) place(off int64) (at, n int64) {
	r := off / b.run
	at, n = b.first+off%b.run, b.run-off%b.run
	for i := len(b.outer) - 1; i >= 0; i-- {
		at += r % b.outer[i].count * b.outer[i].stride
		r /= b.outer[i].count
	}
	return at, n
}

// span returns a stretch of the tensor that is worth reading at once: where it begins and ends, and how many bytes
// of the piece lie in it, at most most, from byte off of the piece on. More than one run is at most limit bytes.
func (b *box) span(off, most, limit int64) (at, end, useful int64) {
	at, n := b.place(off)
	useful = min(n, most)
	end = at + useful
	for useful < most {
		next, n := b.place(off + useful)
		n = min(n, most-useful)
		if next < end || next-end > gapBytes || next+n-at > limit {
			break
		}
		end, useful = next+n, useful+n
	}
	return at, end, useful
}

// gather reads bytes of a piece of tensor t, from byte off on. Where scratch is empty, nothing but them is read.
func (b *box) gather(s State, t int, p []byte, off int64, scratch []byte) error {
	for len(p) > 0 {
		at, end, useful := b.span(off, int64(len(p)), int64(len(scratch)))
		if end-at == useful {
			if err := s.ReadAt(t, p[:useful], at); err != nil {
				return err
			}
		} else {
			if err := s.ReadAt(t, scratch[:end-at], at); err != nil {
				return err
			}
			b.pick(p[:useful], scratch, off, at)
		}
		p, off = p[useful:], off+useful
	}
	return nil
}

// pick fills p with bytes of the piece, from byte off on, out of span, which begins at byte at of the tensor.
func (b *box) pick(p, span []byte, off, at int64) {
	for len(p) > 0 {
		from, n := b.place(off)
		n = min(n, int64(len(p)))
		copy(p[:n], span[from-at:])
		p, off = p[n:], off+n
	}
}

// scatter writes bytes of a piece to tensor t, from byte off on. What lies between the runs belongs to other pieces,
// which others may be writing, so that each run is written by itself.
func (b *box) scatter(s Sink, t int, p []byte, off int64) error {
	for len(p) > 0 {
		at, n := b.place(off)
		n = min(n, int64(len(p)))
		if err := s.WriteAt(t, p[:n], at); err != nil {
			return err
		}
		p, off = p[n:], off+n
	}
	return nil
}
