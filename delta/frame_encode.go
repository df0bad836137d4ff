package delta

import (
	"bytes"
	"slices"
)

// sparseWriter is a sparseEncoder of any width.
type sparseWriter interface {
	begin(c coding, floor uint8)
	copy(o sparseWriter)
	add(old, new []byte)
	mark() mark
	back(m mark)
	changed(m mark) int
	cost(m mark) int
	choose()
	tables() *rowTables
	head(b []byte) (head []byte, symbols int)
	put(w *tansWriter)
}

// codeWriter writes the code of frames; it belongs to one worker.
type codeWriter struct {
	sparse map[coding]sparseWriter
	raw    map[coding]*rawEncoder
	tans   tansWriter
	code   []byte
	stored []byte

	modes      []mode
	begun      []coding // sparse encoders in use, also of what turned out to be raw
	withSparse []coding // in this frame, in the order of their first such blocks
	withRaw    []coding
}

func newCodeWriter() *codeWriter {
	return &codeWriter{sparse: make(map[coding]sparseWriter), raw: make(map[coding]*rawEncoder)}
}

func (w *codeWriter) reset() {
	w.modes, w.begun, w.withSparse, w.withRaw = w.modes[:0], w.begun[:0], w.withSparse[:0], w.withRaw[:0]
}

// put codes a frame, and returns how many words changed. The code is valid until the next call. Weigh, unless it is nil,
// hears how many changed so far, or may be expected to, and returns the writer to go on with, or nil for this one.
func (w *codeWriter) put(f frame, tiles tileSource, weigh func(changed int) (*codeWriter, error)) (code []byte, changed uint64, err error) {
	w.reset()
	expected := 0
	for i, t := range f.tiles {
		old, new, err := tiles.tile(i)
		switch {
		case err != nil:
			return nil, 0, err
		case old == nil:
			w.addRaw(t.coding, new)
			changed += uint64(t.words())
			continue
		case bytes.Equal(old, new):
			w.modes = append(w.modes, modeUnchanged)
			continue
		}
		if !slices.Contains(w.begun, t.coding) {
			floor, changes, err := sample(t.coding, f, i, tiles)
			if err != nil {
				return nil, 0, err
			}
			w.beginSparse(t.coding, floor)
			expected += changes
		}
		if weigh != nil {
			next, err := weigh(max(expected, int(changed)))
			if err != nil {
				return nil, 0, err
			}
			if next != nil {
				next.copy(w)
				w = next
			}
		}
		changed += uint64(w.addChanges(t, old, new))
	}
	for _, c := range w.withSparse {
		w.sparse[c].choose()
	}
	for _, c := range w.withRaw {
		w.raw[c].choose()
	}
	return w.write(), changed, nil
}

// copy makes w go on where o is.
func (w *codeWriter) copy(o *codeWriter) {
	w.reset()
	w.modes, w.begun = append(w.modes, o.modes...), append(w.begun, o.begun...)
	w.withSparse, w.withRaw = append(w.withSparse, o.withSparse...), append(w.withRaw, o.withRaw...)
	for _, c := range w.begun {
		w.sparseOf(c).copy(o.sparse[c])
	}
	for _, c := range w.withRaw {
		w.rawOf(c).copy(o.raw[c])
	}
}

// putLike codes a frame as it was coded when like decoded it.
func (w *codeWriter) putLike(like *codeReader, f frame, old, new [][]byte) []byte {
	w.reset()
	for i, t := range f.tiles {
		switch like.modes[i] {
		case modeRaw:
			w.addRaw(t.coding, new[i])
			continue
		case modeSparse:
			if !slices.Contains(w.begun, t.coding) {
				w.beginSparse(t.coding, like.sparse[t.coding].floor())
			}
			w.sparse[t.coding].add(old[i], new[i])
			w.keepSparse(t.coding)
			continue
		}
		w.modes = append(w.modes, modeUnchanged)
	}
	for _, c := range w.withSparse {
		*w.sparse[c].tables() = *like.sparse[c].tables()
	}
	for _, c := range w.withRaw {
		w.raw[c].models = like.raw[c].models
	}
	return w.write()
}

// write returns the code of what has been added.
func (w *codeWriter) write() []byte {
	code := w.code[:0]
	if len(w.withSparse)+len(w.withRaw) == 0 {
		return nil
	}
	code = appendModes(code, w.modes)
	stored := w.stored[:0]
	symbols := 0
	for _, c := range w.withSparse {
		var n int
		code, n = w.sparse[c].head(code)
		symbols += n
	}
	for _, c := range w.withRaw {
		var n int
		code, stored, n = w.raw[c].head(code, stored)
		symbols += n
	}
	code = append(code, stored...)
	w.code, w.stored = code, stored
	if symbols == 0 {
		return w.code
	}
	w.tans.reset(symbols)
	for _, c := range slices.Backward(w.withRaw) {
		w.raw[c].put(&w.tans)
	}
	for _, c := range slices.Backward(w.withSparse) {
		w.sparse[c].put(&w.tans)
	}
	w.code = append(w.code, w.tans.finish()...)
	return w.code
}

// addChanges chooses the mode of a tile in which something changed. It returns how many words did.
func (w *codeWriter) addChanges(t tile, old, new []byte) (changed int) {
	s := w.sparse[t.coding]
	m := s.mark()
	s.add(old, new)
	changed = s.changed(m)
	if 4*changed > t.words() && 3*(t.words()+s.cost(m)) > 16*t.size {
		s.back(m)
		w.addRaw(t.coding, new)
	} else {
		w.keepSparse(t.coding)
	}
	return changed
}

func (w *codeWriter) beginSparse(c coding, floor uint8) {
	w.begun = append(w.begun, c)
	w.sparseOf(c).begin(c, floor)
}

func (w *codeWriter) sparseOf(c coding) sparseWriter {
	if w.sparse[c] == nil {
		w.sparse[c] = newSparseEncoder(c.width)
	}
	return w.sparse[c]
}

func (w *codeWriter) rawOf(c coding) *rawEncoder {
	if w.raw[c] == nil {
		w.raw[c] = &rawEncoder{}
	}
	return w.raw[c]
}

// keepSparse notes that the tile whose words were added last is written by its changes.
func (w *codeWriter) keepSparse(c coding) {
	w.modes = append(w.modes, modeSparse)
	if !slices.Contains(w.withSparse, c) {
		w.withSparse = append(w.withSparse, c)
	}
}

func (w *codeWriter) addRaw(c coding, new []byte) {
	w.modes = append(w.modes, modeRaw)
	e := w.rawOf(c)
	if !slices.Contains(w.withRaw, c) {
		w.withRaw = append(w.withRaw, c)
		e.begin(c)
	}
	e.add(new)
}
