package delta

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
)

// streamMagic opens every stream; its last byte is the version of the format.
const streamMagic = "SPCAST\x00\x01"

// EncodeOptions are the choices of an encoder that do not shape its output.
type EncodeOptions struct {
	Copy     Sink               // if set, receives the new state as it was read, so that it needs to be read only once
	Progress func(dense uint64) // if set, hears the bytes of the new state that have been read
}

// Summary says what a stream holds.
type Summary struct {
	Base     Root // of the old state as it was read; zero for an anchor
	Target   Root
	Elements uint64
	Changed  uint64
	Dense    uint64 // bytes of the new state
	Coded    uint64 // bytes of the stream
}

// Encode writes to w the stream that leads from old to new, which have one schema. A nil old makes an anchor. Each
// state is read once; memory stays bounded whatever their size.
func Encode(ctx context.Context, w io.Writer, old, new State, opt EncodeOptions) (Summary, error) {
	schema := new.Schema()
	if old != nil && !old.Schema().ID().Equals(schema.ID()) {
		return Summary{}, fmt.Errorf("encode: the states have different schemas; code an anchor instead")
	}
	e, err := newEncoding(w, schema, old != nil)
	if err != nil {
		return Summary{}, err
	}
	err = inOrder(ctx,
		func(yield func([]tile) bool) error { frames(schema)(yield); return nil },
		func() func([]tile) (codedFrame, error) {
			c := &frameEncoder{old: old, new: new, copy: opt.Copy, squeezer: newSqueezer()}
			return c.encode
		},
		func(f codedFrame) error {
			err := e.add(f)
			report(opt.Progress, e.sum.Dense)
			return err
		})
	if err != nil {
		return Summary{}, fmt.Errorf("encode: %w", err)
	}
	return e.finish(), nil
}

// encoding is the ordered end of an encoder: it writes frames and folds roots.
type encoding struct {
	w         io.Writer
	sum       Summary
	old, new  *rootHash
	withDelta bool
}

func newEncoding(w io.Writer, schema *Schema, withDelta bool) (*encoding, error) {
	oldHash, err := newRootHash(schema)
	if err != nil {
		return nil, err
	}
	newHash, err := newRootHash(schema)
	if err != nil {
		return nil, err
	}
	e := &encoding{w: w, old: oldHash, new: newHash, withDelta: withDelta}
	return e, e.write([]byte(streamMagic))
}

func (e *encoding) write(b []byte) error {
	n, err := e.w.Write(b)
	e.sum.Coded += uint64(n)
	if err != nil {
		return fmt.Errorf("write stream: %w", err)
	}
	return nil
}

func (e *encoding) add(f codedFrame) error {
	e.new.addRun(f.run, f.new)
	if e.withDelta {
		e.old.addRun(f.run, f.old)
	}
	for _, t := range f.run {
		e.sum.Elements += uint64(t.words())
	}
	e.sum.Dense += denseBytes(f.run)
	e.sum.Changed += f.changed
	if err := e.write(binary.AppendUvarint(nil, uint64(len(f.code)))); err != nil {
		return err
	}
	return e.write(f.code)
}

func (e *encoding) finish() Summary {
	e.sum.Target = e.new.root()
	if e.withDelta {
		e.sum.Base = e.old.root()
	}
	return e.sum
}

// codedFrame is a frame as a worker hands it on.
type codedFrame struct {
	run      []tile
	code     []byte
	changed  uint64
	old, new []blockDigest
}

// frameEncoder codes one frame at a time; it belongs to one worker.
type frameEncoder struct {
	old, new State
	copy     Sink
	squeezer *squeezer

	oldBuf, newBuf frameBuffer
	sections       sections
	positions      [][]uint32
}

func (c *frameEncoder) encode(run []tile) (codedFrame, error) {
	f := codedFrame{run: run}
	newTiles, err := c.newBuf.load(c.new, run)
	if err != nil {
		return f, err
	}
	if c.copy != nil {
		if err := store(c.copy, run, newTiles); err != nil {
			return f, err
		}
	}
	f.new = digestAll(newTiles)
	c.sections.reset()
	if c.old == nil {
		f.changed = c.encodeAnchor(run, newTiles)
	} else {
		oldTiles, err := c.oldBuf.load(c.old, run)
		if err != nil {
			return f, err
		}
		f.old = digestAll(oldTiles)
		f.changed = c.encodeDelta(run, oldTiles, newTiles)
	}
	f.code = c.squeezer.append(nil, &c.sections)
	return f, nil
}

func (c *frameEncoder) encodeAnchor(run []tile, newTiles [][]byte) (changed uint64) {
	c.head(make([]byte, widths)...)
	for i, t := range run {
		c.head(tileRaw)
		writeRaw(&c.sections, newTiles[i], t.coding.width)
		changed += uint64(t.words())
	}
	return changed
}

func (c *frameEncoder) head(b ...byte) {
	c.sections[sectionHead] = append(c.sections[sectionHead], b...)
}

// encodeDelta finds what changed first, since the floor of the classes is shared by the frame.
func (c *frameEncoder) encodeDelta(run []tile, oldTiles, newTiles [][]byte) (changed uint64) {
	var seen [widths]exponents
	for len(c.positions) < len(run) {
		c.positions = append(c.positions, nil)
	}
	for i, t := range run {
		pos := findChanges(c.positions[i][:0], oldTiles[i], newTiles[i], t.coding, &seen[widthIndex(t.coding.width)])
		c.positions[i] = pos
		changed += uint64(len(pos))
	}
	var floors [widths]uint8
	for i := range floors {
		floors[i] = seen[i].floor()
	}
	c.head(floors[:]...)
	for i, t := range run {
		c.encodeTile(t, oldTiles[i], newTiles[i], c.positions[i], floors[widthIndex(t.coding.width)])
	}
	return changed
}

func (c *frameEncoder) encodeTile(t tile, old, new []byte, pos []uint32, floor uint8) {
	switch {
	case len(pos) == 0:
		c.head(tileUnchanged)
	case 2*len(pos)+classCount > t.size: // a change takes a gap and a step, a byte each at least
		c.head(tileRaw)
		writeRaw(&c.sections, new, t.coding.width)
	default:
		c.head(tileSparse)
		writeChanges(&c.sections, old, new, pos, t.coding, floor)
	}
}
