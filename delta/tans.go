package delta

import (
	"errors"
	"math/bits"
)

// The entropy coder is tANS (Duda, "Asymmetric numeral systems", arXiv 1311.2540, section 4; the tables are built as in
// FSE). A symbol that has frequency f out of tansSize costs log2(tansSize/f) bits. All tables have one size, so that
// a coder carries its states from one table to the next; its symbols take turns on tansStates states, which lets a
// processor work on several of them at a time.
const (
	tansLog    = 11
	tansSize   = 1 << tansLog
	tansStates = 4
)

// tansEntry is what a state decodes to: symbol, then how many bits to read, then what to add to them for the next state.
type tansEntry uint32

func (e tansEntry) symbol() uint32 { return uint32(e) & 0xff }
func (e tansEntry) bits() uint     { return uint(e) >> 8 & 0xff }
func (e tansEntry) base() uint32   { return uint32(e) >> 16 }

// tansTable codes symbols of one distribution.
type tansTable struct {
	entries [tansSize]tansEntry
	next    [tansSize]uint16 // states by symbol, as an encoder finds them
	symbols [256]tansSymbol
}

// tansSymbol leads an encoder from a state, counted from tansSize on, to the next: see code.
type tansSymbol struct {
	bits  uint32 // such that (state+bits)>>16 is the number of bits to write
	start int32  // where the states of the symbol begin in next, less its frequency
}

// build makes t code symbols with these frequencies, which add up to tansSize.
func (t *tansTable) build(freq []uint16) {
	var spread [tansSize]uint8
	const step = tansSize/2 + tansSize/8 + 3
	at := 0
	for s, f := range freq {
		for range f {
			spread[at] = uint8(s)
			at = (at + step) % tansSize
		}
	}
	var seen, begin [256]uint32
	sum := uint32(0)
	for s, f := range freq {
		seen[s], begin[s] = uint32(f), sum
		if f > 0 {
			high := uint32(tansLog)
			if f > 1 {
				high -= uint32(bits.Len16(f-1)) - 1
			}
			t.symbols[s] = tansSymbol{bits: high<<16 - uint32(f)<<high, start: int32(sum) - int32(f)}
		}
		sum += uint32(f)
	}
	for state, s := range spread {
		x := seen[s]
		seen[s]++
		t.next[begin[s]+x-uint32(freq[s])] = uint16(state)
		n := uint32(tansLog + 1 - bits.Len32(x))
		t.entries[state] = tansEntry(uint32(s) | n<<8 | (x<<n-tansSize)<<16)
	}
}

// code moves a state, from 0 on, over symbol s, and returns the bits to write.
func (t *tansTable) code(state uint32, s uint8) (next uint32, v uint64, n uint) {
	e := &t.symbols[s]
	x := state + tansSize
	n = uint((x+e.bits)>>16) & 31
	return uint32(t.next[uint32(int32(x>>n)+e.start)%tansSize]), uint64(x) & (1<<n - 1), n
}

// tansWriter writes symbols in the reverse order.
type tansWriter struct {
	bitWriter
	states [tansStates]uint32
	turn   uint // of the symbol written last
}

func (w *tansWriter) reset(symbols int) {
	w.bitWriter.reset()
	w.states, w.turn = [tansStates]uint32{}, uint(symbols)
}

func (w *tansWriter) symbol(t *tansTable, s uint8) {
	w.turn--
	state := &w.states[w.turn%tansStates]
	next, v, n := t.code(*state, s)
	*state = next
	w.put(v, n)
}

func (w *tansWriter) finish() []byte {
	for i := range w.states {
		w.put(uint64(w.states[tansStates-1-i]), tansLog)
	}
	return w.bitWriter.finish()
}

// tansReader reads what tansWriter wrote.
type tansReader struct {
	bitReader
	states [tansStates]uint32
	turn   uint
}

// newTansReader reads the stream in all but the last bitSlack bytes of buf.
func newTansReader(buf []byte) (r tansReader, err error) {
	if r.bitReader, err = newBitReader(buf); err != nil {
		return r, err
	}
	for i := range r.states {
		r.states[i] = uint32(r.take(tansLog))
	}
	return r, r.overrun()
}

func (r *tansReader) symbol(t *tansTable) uint32 {
	state := &r.states[r.turn%tansStates]
	r.turn++
	e := t.entries[*state%tansSize]
	*state = e.base() + uint32(r.take(e.bits()))
	return e.symbol()
}

// finish reports whether just all was read.
func (r *tansReader) finish() error {
	if r.states != [tansStates]uint32{} {
		return errors.New("the code does not end where it began")
	}
	return r.bitReader.finish()
}
