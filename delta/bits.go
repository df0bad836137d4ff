package delta

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// A stream of bits is written from its end to its begin and read forward, because the entropy coder (tans.go) gives its
// symbols back in the reverse order. Bits fill bytes from the lowest on. The first byte begins with up to seven zeros and
// a one, since writers end where they end.

// bitWriter writes a stream of bits backward.
type bitWriter struct {
	buf []byte // filled from the end
	at  int    // the first byte that is
	acc uint64 // bits that come before it, n of them, the first one lowest
	n   uint
}

func (w *bitWriter) reset() {
	w.buf = w.buf[:cap(w.buf)]
	w.at, w.acc, w.n = len(w.buf), 0, 0
}

// put writes the lowest n bits of v, at most 32; the others must be zero.
func (w *bitWriter) put(v uint64, n uint) {
	w.acc = w.acc<<n | v
	w.n += n
	if w.n >= 32 {
		if w.at < 4 {
			w.grow()
		}
		w.n -= 32
		w.at -= 4
		binary.LittleEndian.PutUint32(w.buf[w.at:], uint32(w.acc>>w.n))
	}
}

// putWide writes the lowest n bits of v, at most 64.
func (w *bitWriter) putWide(v uint64, n uint) {
	if n > 32 {
		w.put(v>>32, n-32)
		v, n = v&(1<<32-1), 32
	}
	w.put(v, n)
}

func (w *bitWriter) grow() {
	bigger := make([]byte, max(4096, 2*len(w.buf)))
	n := copy(bigger[len(bigger)-(len(w.buf)-w.at):], w.buf[w.at:])
	w.buf, w.at = bigger, len(bigger)-n
}

// finish returns the stream, which is valid until the next reset.
func (w *bitWriter) finish() []byte {
	w.put(1, 1)
	fill := -w.n % 8
	w.acc, w.n = w.acc<<fill, w.n+fill
	for ; w.n > 0; w.n -= 8 {
		if w.at == 0 {
			w.grow()
		}
		w.at--
		w.buf[w.at] = byte(w.acc >> (w.n - 8))
	}
	return w.buf[w.at:]
}

// bitReader reads a stream of bits forward.
type bitReader struct {
	buf []byte // with bitSlack bytes behind the stream
	at  int    // in bits
	end int    // in bits
}

// bitSlack is how many bytes a reader may look at behind the end.
const bitSlack = 8

var errBits = errors.New("the code ends early")

// newBitReader reads the stream in all but the last bitSlack bytes of buf.
func newBitReader(buf []byte) (bitReader, error) {
	end := len(buf) - bitSlack
	if end <= 0 || buf[0] == 0 {
		return bitReader{}, errBits
	}
	return bitReader{buf: buf, at: bits.TrailingZeros8(buf[0]) + 1, end: 8 * end}, nil
}

// window returns at least 57 bits from bit at on. Whoever takes more than there are finds out by overrun.
func (r *bitReader) window(at int) uint64 {
	return binary.LittleEndian.Uint64(r.buf[min(at>>3, len(r.buf)-bitSlack):]) >> (at & 7)
}

// take reads n bits, at most 57.
func (r *bitReader) take(n uint) uint64 {
	v := r.window(r.at) & (1<<n - 1)
	r.at += int(n)
	return v
}

// takeWide reads n bits, at most 64.
func (r *bitReader) takeWide(n uint) uint64 {
	if n <= 32 {
		return r.take(n)
	}
	low := r.take(32) // putWide writes the low ones last
	return low | r.take(n-32)<<32
}

// overrun reports whether more was taken than there was.
func (r *bitReader) overrun() error {
	if r.at > r.end {
		return errBits
	}
	return nil
}

// finish reports whether just all was taken.
func (r *bitReader) finish() error {
	if err := r.overrun(); err != nil {
		return err
	}
	if r.at != r.end {
		return errors.New("code is left over")
	}
	return nil
}
