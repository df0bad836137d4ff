package delta

import (
	"encoding/binary"
	"errors"
	"slices"
	"unsafe"
)

// Raw words are written plane by plane: all their highest bytes, then the next ones and so on. A float is turned left by a
// bit before, which puts eight bits of its exponent into the highest plane and the sign below its mantissa: the exponent
// is what there is to squeeze in weights. A plane is coded with a table of its own where that is shorter than its bytes.

// turned returns w with the exponent in the highest bits.
func turned[T word](w T, float bool) T {
	if float {
		return w<<1 | w>>(8*unsafe.Sizeof(w)-1)
	}
	return w
}

// unturned undoes turned.
func unturned[T word](w T, float bool) T {
	if float {
		return w>>1 | w<<(8*unsafe.Sizeof(w)-1)
	}
	return w
}

func appendPlane[T word](dst []byte, words []T, plane int, float bool) []byte {
	shift := 8 * (int(unsafe.Sizeof(T(0))) - 1 - plane)
	for _, w := range words {
		dst = append(dst, byte(turned(w, float)>>shift))
	}
	return dst
}

// joinPlanes makes words of their planes.
func joinPlanes[T word](words []T, planes *[8][]byte, float bool) {
	size := int(unsafe.Sizeof(T(0)))
	for i := range words {
		var w T
		for j, p := range planes[:size] {
			w |= T(p[i]) << (8 * (size - 1 - j))
		}
		words[i] = unturned(w, float)
	}
}

// planeModel is how often each byte occurs in a plane, out of tansSize; nil for one that is stored as it is.
type planeModel []uint16

// planeOf returns what codes a plane the shortest.
func planeOf(plane []byte) planeModel {
	var weights [256]uint64
	for _, b := range plane {
		weights[b]++
	}
	m := make(planeModel, 256)
	normalize(m, weights[:])
	cost := 8 * 256 * len(m.append(nil))
	for s, n := range weights {
		if n > 0 {
			cost += int(n) * (256*tansLog - log2(uint64(m[s])))
		}
	}
	if cost >= 8*256*len(plane) {
		return nil
	}
	return m
}

// append writes a model down: 0 for none; else 1, then the frequencies up to the last that is not zero, in uvarints; behind
// a zero, how many more zeros follow.
func (m planeModel) append(b []byte) []byte {
	if m == nil {
		return append(b, 0)
	}
	b = append(b, 1)
	left := tansSize
	for s := 0; left > 0; s++ {
		b = binary.AppendUvarint(b, uint64(m[s]))
		left -= int(m[s])
		if m[s] == 0 {
			run := 0
			for m[s+1] == 0 {
				s++
				run++
			}
			b = append(b, byte(run))
		}
	}
	return b
}

var errPlane = errors.New("table of a plane is damaged")

func readPlane(in *cursor) (planeModel, error) {
	b, err := in.take(1)
	if err != nil || b[0] == 0 {
		return nil, err
	}
	if b[0] != 1 {
		return nil, errPlane
	}
	m := make(planeModel, 256)
	left, zeros := tansSize, false
	for s := 0; left > 0; s++ {
		f, err := in.count(left)
		if err != nil {
			return nil, err
		}
		if s > 255 || f == 0 && zeros {
			return nil, errPlane
		}
		m[s] = uint16(f)
		left -= f
		if zeros = f == 0; zeros {
			run, err := in.take(1)
			if err != nil {
				return nil, err
			}
			s += int(run[0])
		}
	}
	return m, nil
}

// rawEncoder codes the raw words of one coding. It belongs to one worker.
type rawEncoder struct {
	coding coding
	planes [8][]byte
	models [8]planeModel
}

func (e *rawEncoder) begin(c coding) {
	e.coding = c
	for i := range e.planes {
		e.planes[i] = e.planes[i][:0]
	}
}

// copy makes e go on where o is.
func (e *rawEncoder) copy(o *rawEncoder) {
	e.begin(o.coding)
	for i, p := range o.planes {
		e.planes[i] = append(e.planes[i], p...)
	}
}

// add takes the words of the next block.
func (e *rawEncoder) add(new []byte) {
	for i := range e.coding.width {
		e.planes[i] = appendPlaneOf(e.planes[i], new, i, e.coding)
	}
}

// choose chooses the models of the planes, once all of them are there.
func (e *rawEncoder) choose() {
	for i, p := range e.planes[:e.coding.width] {
		e.models[i] = planeOf(p)
	}
}

// head appends the models of all planes to head, and the bytes of those that are stored to stored. It returns the number
// of symbols that put writes.
func (e *rawEncoder) head(head, stored []byte) (_, _ []byte, symbols int) {
	for i, p := range e.planes[:e.coding.width] {
		m := e.models[i]
		head = m.append(head)
		if m == nil {
			stored = append(stored, p...)
		} else {
			symbols += len(p)
		}
	}
	return head, stored, symbols
}

// put writes the planes that are coded, in reverse.
func (e *rawEncoder) put(w *tansWriter) {
	for i := e.coding.width - 1; i >= 0; i-- {
		if e.models[i] == nil {
			continue
		}
		var t tansTable
		t.build(e.models[i])
		for j := len(e.planes[i]) - 1; j >= 0; j-- {
			w.symbol(&t, e.planes[i][j])
		}
	}
}

// rawDecoder undoes rawEncoder. It belongs to one worker.
type rawDecoder struct {
	coding coding
	words  int // of all blocks
	planes [8][]byte
	coded  [8][]byte // room for planes that are not stored
	models [8]planeModel
	next   int // the word that comes next
}

// head reads what rawEncoder.head wrote of that many words. It returns the number of symbols.
func (d *rawDecoder) head(in *cursor, c coding, words int) (symbols int, err error) {
	d.coding, d.words, d.next = c, words, 0
	for i := range c.width {
		if d.models[i], err = readPlane(in); err != nil {
			return 0, err
		}
		if d.models[i] != nil {
			symbols += words
		}
	}
	return symbols, nil
}

// store takes the planes that are stored.
func (d *rawDecoder) store(in *cursor) (err error) {
	for i, m := range d.models[:d.coding.width] {
		if m == nil {
			if d.planes[i], err = in.take(d.words); err != nil {
				return err
			}
		}
	}
	return nil
}

// take reads the planes that are coded.
func (d *rawDecoder) take(r *tansReader) error {
	for i, m := range d.models[:d.coding.width] {
		if m == nil {
			continue
		}
		var t tansTable
		t.build(m)
		plane := slices.Grow(d.coded[i][:0], d.words)[:d.words]
		for j := range plane {
			plane[j] = byte(r.symbol(&t))
		}
		d.planes[i], d.coded[i] = plane, plane
		if err := r.overrun(); err != nil {
			return err
		}
	}
	return nil
}

// put makes the words of the next block.
func (d *rawDecoder) put(new []byte) {
	n := len(new) / d.coding.width
	var planes [8][]byte
	for i := range d.coding.width {
		planes[i] = d.planes[i][d.next : d.next+n]
	}
	d.next += n
	joinPlanesOf(new, &planes, d.coding)
}
