package delta

import (
	"errors"
	"fmt"
	"slices"
)

// sparseReader is a sparseDecoder of any width.
type sparseReader interface {
	head(in *cursor, c coding, words int) (changed int, err error)
	take(r *tansReader) error
	apply(old, new []byte)
	finish() error
	floor() uint8
	tables() *rowTables
}

// codeReader reads the code of frames; it belongs to one worker.
type codeReader struct {
	sparse map[coding]sparseReader
	raw    map[coding]*rawDecoder

	code       []byte // with bitSlack bytes behind it
	rest       cursor // what comes of it behind the head
	symbols    int    // in that
	modes      []mode
	withSparse []coding
	withRaw    []coding
}

func newCodeReader() *codeReader {
	return &codeReader{sparse: make(map[coding]sparseReader), raw: make(map[coding]*rawDecoder)}
}

// decode fills the new tiles of a frame. There are no old ones in an anchor.
func (d *codeReader) decode(f frame, code []byte, old, new [][]byte) error {
	if _, err := d.begin(f, code, old == nil); err != nil {
		return err
	}
	if err := d.read(); err != nil {
		return err
	}
	return d.tiles(f, old, new)
}

// tiles makes all tiles of the frame, after begin.
func (d *codeReader) tiles(f frame, old, new [][]byte) error {
	for i, t := range f.tiles {
		var before []byte
		if old != nil {
			before = old[i]
		}
		d.tile(i, t.coding, before, new[i])
	}
	return d.finish()
}

// begin looks at the head of the code of a frame, and may write into the room behind it. It returns how many words are to
// be held. Read follows.
func (d *codeReader) begin(f frame, code []byte, anchor bool) (words int, err error) {
	d.modes, d.withSparse, d.withRaw, d.symbols = d.modes[:0], d.withSparse[:0], d.withRaw[:0], 0
	if len(code) > 0 {
		d.code = code
		d.code = append(d.code, make([]byte, bitSlack)...)
		return d.head(f, anchor)
	}
	if anchor {
		return 0, errors.New("an anchor that leaves tiles as they are")
	}
	for range f.tiles {
		d.modes = append(d.modes, modeUnchanged)
	}
	d.rest = cursor{}
	return 0, nil
}

// tile makes a tile of what it was. It is called for each tile, in order.
func (d *codeReader) tile(i int, c coding, old, new []byte) {
	if d.modes[i] == modeRaw {
		d.raw[c].put(new)
		return
	}
	copy(new, old)
	if d.modes[i] == modeSparse {
		d.sparse[c].apply(old, new)
	}
}

// finish reports whether all changes had their place.
func (d *codeReader) finish() error {
	for _, c := range d.withSparse {
		if err := d.sparse[c].finish(); err != nil {
			return fmt.Errorf("changes of %s: %w", c, err)
		}
	}
	return nil
}

// head reads the modes and the heads of all rows.
func (d *codeReader) head(f frame, anchor bool) (words int, err error) {
	d.rest = cursor{d.code[:len(d.code)-bitSlack]}
	if d.modes, err = readModes(&d.rest, d.modes, len(f.tiles)); err != nil {
		return 0, err
	}
	if anchor && slices.ContainsFunc(d.modes, func(m mode) bool { return m != modeRaw }) {
		return 0, errors.New("an anchor with tiles that are not raw")
	}
	d.symbols, words, err = d.heads(&d.rest, f)
	return words, err
}

// read reads what is behind the head, all but what takes the old tiles.
func (d *codeReader) read() error {
	for _, c := range d.withRaw {
		if err := d.raw[c].store(&d.rest); err != nil {
			return err
		}
	}
	if d.symbols == 0 {
		if n := len(d.rest.rest); n > 0 {
			return fmt.Errorf("%d bytes behind the frame", n)
		}
		return nil
	}
	r, err := newTansReader(d.code[len(d.code)-bitSlack-len(d.rest.rest):])
	if err != nil {
		return err
	}
	for _, c := range d.withSparse {
		if err := d.sparse[c].take(&r); err != nil {
			return fmt.Errorf("changes of %s: %w", c, err)
		}
	}
	for _, c := range d.withRaw {
		if err := d.raw[c].take(&r); err != nil {
			return fmt.Errorf("raw words of %s: %w", c, err)
		}
	}
	return r.finish()
}

// heads reads what comes before the stored bytes. It returns how many symbols follow, and how many words are to be held.
func (d *codeReader) heads(in *cursor, f frame) (symbols, held int, err error) {
	d.withSparse, d.withRaw = d.withSparse[:0], d.withRaw[:0]
	words := make(map[mode]map[coding]int, 2)
	for m, list := range map[mode]*[]coding{modeSparse: &d.withSparse, modeRaw: &d.withRaw} {
		words[m] = make(map[coding]int)
		for i, t := range f.tiles {
			if d.modes[i] != m {
				continue
			}
			if words[m][t.coding] == 0 {
				*list = append(*list, t.coding)
			}
			words[m][t.coding] += t.words()
		}
	}
	for _, c := range d.withSparse {
		s := d.sparse[c]
		if s == nil {
			s = newSparseDecoder(c.width)
			d.sparse[c] = s
		}
		n, err := s.head(in, c, words[modeSparse][c])
		if err != nil {
			return 0, 0, fmt.Errorf("changes of %s: %w", c, err)
		}
		symbols, held = symbols+n, held+n
	}
	for _, c := range d.withRaw {
		r := d.raw[c]
		if r == nil {
			r = &rawDecoder{}
			d.raw[c] = r
		}
		n, err := r.head(in, c, words[modeRaw][c])
		if err != nil {
			return 0, 0, fmt.Errorf("raw words of %s: %w", c, err)
		}
		symbols, held = symbols+n, held+words[modeRaw][c]
	}
	return symbols, held, nil
}
