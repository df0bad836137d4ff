package delta

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Decode reads a stream that Encode wrote, applies it to old and writes the new state to sink, block by block as it
// goes. It returns the root of what it wrote: the caller compares it with the root that was promised, and throws the
// new state away when they differ. Old is nil for an anchor. Sink may lie in the same place as old, since a frame is
// read whole before it is written; then nothing is left of old on any error.
func Decode(ctx context.Context, r io.Reader, schema *Schema, old State, sink Sink, progress func(dense uint64)) (Root, error) {
	if old != nil && !old.Schema().ID().Equals(schema.ID()) {
		return Root{}, errors.New("decode: the stream has another schema than the state it is applied to")
	}
	root, err := newRootHash(schema)
	if err != nil {
		return Root{}, err
	}
	in := bufio.NewReaderSize(r, 64<<10)
	var dense uint64
	err = inOrder(ctx,
		func(yield func(frameJob) bool) error { return readFrames(in, schema, yield) },
		func() func(frameJob) (decodedFrame, error) {
			d := &frameDecoder{old: old, sink: sink, unsqueezer: newUnsqueezer()}
			return d.decode
		},
		func(f decodedFrame) error {
			root.addRun(f.run, f.digests)
			dense += denseBytes(f.run)
			report(progress, dense)
			return nil
		})
	if err != nil {
		return Root{}, fmt.Errorf("decode: %w", err)
	}
	return root.root(), nil
}

// frameJob is a frame as it stands in the stream, with the tiles that the schema says it holds.
type frameJob struct {
	run  []tile
	code []byte
}

// headBound bounds the head section and the lengths of all sections of a frame.
func headBound(run []tile) int { return widths + len(run)*(1+3*classCount) + 10*sectionCount }

// codeBound bounds the code of a frame: what is longer than the dense bytes is not coded so. It bounds what a
// stream can make us allocate.
func codeBound(run []tile) int { return int(denseBytes(run))*4 + headBound(run) }

// readFrames takes a stream apart. It asks for every frame that the schema implies and for nothing behind them.
func readFrames(in *bufio.Reader, schema *Schema, yield func(frameJob) bool) error {
	magic := make([]byte, len(streamMagic))
	if _, err := io.ReadFull(in, magic); err != nil {
		return fmt.Errorf("stream header: %w", truncated(err))
	}
	if string(magic) != streamMagic {
		return fmt.Errorf("stream header: %q is no sparsecast stream that this build reads", magic)
	}
	n := 0
	for run := range frames(schema) {
		code, err := readFrame(in, codeBound(run))
		if err != nil {
			return fmt.Errorf("frame %d: %w", n, truncated(err))
		}
		if !yield(frameJob{run, code}) {
			return nil
		}
		n++
	}
	if _, err := in.ReadByte(); err != io.EOF {
		return errors.New("bytes behind the last frame")
	}
	return nil
}

func readFrame(in *bufio.Reader, limit int) ([]byte, error) {
	size, err := binary.ReadUvarint(in)
	if err != nil {
		return nil, err
	}
	if size > uint64(limit) {
		return nil, fmt.Errorf("%d bytes of code, at most %d", size, limit)
	}
	code := make([]byte, size)
	_, err = io.ReadFull(in, code)
	return code, err
}

// truncated names an early end as such.
func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the stream ends early")
	}
	return err
}

type decodedFrame struct {
	run     []tile
	digests []blockDigest
}

// frameDecoder decodes one frame at a time; it belongs to one worker.
type frameDecoder struct {
	old        State
	sink       Sink
	unsqueezer *unsqueezer

	oldBuf, newBuf frameBuffer
	sections       sections
}

func (d *frameDecoder) decode(f frameJob) (decodedFrame, error) {
	var oldTiles [][]byte
	if d.old != nil {
		var err error
		if oldTiles, err = d.oldBuf.load(d.old, f.run); err != nil {
			return decodedFrame{}, err
		}
	}
	newTiles := d.newBuf.lay(f.run)
	if err := d.decodeTiles(f, oldTiles, newTiles); err != nil {
		return decodedFrame{}, err
	}
	if err := store(d.sink, f.run, newTiles); err != nil {
		return decodedFrame{}, err
	}
	return decodedFrame{f.run, digestAll(newTiles)}, nil
}

func (d *frameDecoder) decodeTiles(f frameJob, oldTiles, newTiles [][]byte) error {
	if err := d.unsqueezer.unpack(&d.sections, f.code, codeBound(f.run)); err != nil {
		return err
	}
	var in [sectionCount]cursor
	for i := range in {
		in[i].rest = d.sections[i]
	}
	floors, err := in[sectionHead].take(widths)
	if err != nil {
		return err
	}
	for i, t := range f.run {
		var old []byte
		if oldTiles != nil {
			old = oldTiles[i]
		}
		if err := decodeTile(&in, t, old, newTiles[i], floors[widthIndex(t.coding.width)]); err != nil {
			return fmt.Errorf("tensor %d, byte %d: %w", t.tensor, t.off, err)
		}
	}
	for i, c := range in {
		if len(c.rest) > 0 {
			return fmt.Errorf("section %d: %d bytes too many", i, len(c.rest))
		}
	}
	return nil
}

// decodeTile fills new. Old is nil in an anchor, where every tile is raw.
func decodeTile(in *[sectionCount]cursor, t tile, old, new []byte, floor uint8) error {
	mode, err := in[sectionHead].take(1)
	if err != nil {
		return err
	}
	switch {
	case mode[0] == tileRaw:
		return readRaw(in, new, t.coding.width)
	case old == nil:
		return fmt.Errorf("tile of mode %d in an anchor", mode[0])
	case mode[0] == tileUnchanged:
		copy(new, old)
		return nil
	case mode[0] == tileSparse:
		copy(new, old)
		_, err := readChanges(in, old, new, t.coding, floor)
		return err
	}
	return fmt.Errorf("unknown tile mode %d", mode[0])
}
