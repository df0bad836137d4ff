package delta

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
)

// DecodeOptions are what a decoder may do along the way.
type DecodeOptions struct {
	Progress func(dense uint64) // if set, hears the bytes of the new state that have been written
	// Reverse, if set, receives the stream that leads back from the new state to the old one, exactly as Encode
	// would write it. Each frame comes in one call of Write, which returns before any byte of that frame is
	// written to the sink: so what a decoder in place overwrites is never the only copy.
	Reverse io.Writer
	Keep    Keep // if set, sees every frame before it is written
}

// Decoded says what a stream held.
type Decoded struct {
	Root    Root     // of the new state
	Digests *Digests // of the new state
	Groups  []uint64 // bytes of the stream of each group
	Frames  []uint32 // bytes of the code of each frame
	Reverse *Summary // of the stream back; nil unless one was asked for
}

// Decode reads a stream that Encode wrote, applies it to old and writes the new state to sink, block by block as it
// goes. The caller compares the root of what it wrote with the root that was promised, and throws the new state away
// when they differ. Old is nil for an anchor. Sink may lie in the same place as old, since a frame is read whole
// before it is written; then nothing is left of old on any error.
func Decode(ctx context.Context, r io.Reader, schema *Schema, old State, sink Sink, opt DecodeOptions) (Decoded, error) {
	d, err := decode(ctx, r, schema, old, sink, opt)
	if err != nil {
		return Decoded{}, fmt.Errorf("decode: %w", err)
	}
	return d, nil
}

func decode(ctx context.Context, r io.Reader, schema *Schema, old State, sink Sink, opt DecodeOptions) (Decoded, error) {
	if old != nil && !old.Schema().ID().Equals(schema.ID()) {
		return Decoded{}, errors.New("the stream has another schema than the state it is applied to")
	}
	if old == nil && opt.Reverse != nil {
		return Decoded{}, errors.New("nothing leads back from an anchor")
	}
	var back *reversing
	if opt.Reverse != nil {
		back = newReversing(opt.Reverse, schema)
	}
	in := &streamReader{in: bufio.NewReaderSize(r, 64<<10), schema: schema}
	d := Decoded{Digests: &Digests{}}
	var dense uint64
	whole := opt.Reverse != nil || opt.Keep != nil
	err := inOrder(ctx, workersFor(whole || old == nil),
		func(yield func(frameJob) bool) error {
			return in.run(func(f frame, code []byte) bool { return yield(frameJob{f, code, back.nextTurn()}) })
		},
		func() func(context.Context, frameJob) (decodedFrame, error) {
			w := &frameDecoder{schema: schema, old: old, sink: sink, back: back.worker(), keep: opt.Keep, whole: whole, reader: newReaderScratch()}
			return w.decode
		},
		func(f decodedFrame) error {
			d.Digests.blocks = append(d.Digests.blocks, f.digests...)
			dense += f.dense()
			report(opt.Progress, dense)
			return nil
		})
	if err != nil {
		return Decoded{}, err
	}
	d.Groups, d.Frames = in.groups, in.frames
	if back != nil {
		if d.Reverse, err = back.finish(); err != nil {
			return Decoded{}, err
		}
	}
	d.Root, err = d.Digests.Root(schema)
	return d, err
}

type decodedFrame struct {
	frame
	digests []blockDigest
}

// frameDecoder decodes one frame at a time; it belongs to one worker.
type frameDecoder struct {
	schema *Schema
	old    State
	sink   Sink
	back   *frameReverser // nil unless a reverse is written along
	keep   Keep
	whole  bool // all tiles are made before any is written
	reader scratch[codeReader]

	oldBuf, newBuf frameBuffer
}

func (d *frameDecoder) decode(ctx context.Context, f frameJob) (out decodedFrame, err error) {
	defer giveBuffer(f.code)
	// Others may be writing what lies between the runs of a piece, so that only the runs are read.
	d.oldBuf.narrow = true
	out.frame = f.frame
	if d.whole {
		out.digests, err = d.decodeWhole(ctx, f)
	} else {
		out.digests, err = d.decodeTiles(ctx, f)
	}
	return out, err
}

// decodeTiles makes one tile after the other, while it is in the cache.
func (d *frameDecoder) decodeTiles(ctx context.Context, f frameJob) ([]blockDigest, error) {
	reader, err := d.read(ctx, f)
	defer d.reader.end()
	if err != nil {
		return nil, err
	}
	digests := make([]blockDigest, len(f.tiles))
	into := d.lender()
	for i, t := range f.tiles {
		var old []byte
		if d.old != nil {
			if old, err = d.oldBuf.loadOne(d.old, t); err != nil {
				return nil, err
			}
		}
		new := d.newBuf.layOne(t, into)
		reader.tile(i, t.coding, old, new)
		digests[i] = digestBlock(new)
		if into != nil && t.box == nil {
			continue
		}
		if err := storeTile(d.sink, t, new); err != nil {
			return nil, err
		}
	}
	if err := reader.finish(); err != nil {
		return nil, f.named(d.schema, err)
	}
	return digests, nil
}

// read reads the code of a frame.
func (d *frameDecoder) read(ctx context.Context, f frameJob) (*codeReader, error) {
	reader, err := d.reader.begin(ctx)
	if err != nil {
		return nil, err
	}
	words, err := reader.begin(f.frame, f.code, d.old == nil)
	if err != nil {
		return nil, f.named(d.schema, err)
	}
	if d.old != nil {
		next, err := d.reader.weigh(ctx, words)
		if err != nil {
			return nil, err
		}
		if next != nil {
			reader = next
			if _, err := reader.begin(f.frame, f.code, false); err != nil {
				return nil, f.named(d.schema, err)
			}
		}
	}
	if err := reader.read(); err != nil {
		return nil, f.named(d.schema, err)
	}
	return reader, nil
}

// decodeWhole makes all tiles before it writes any.
func (d *frameDecoder) decodeWhole(ctx context.Context, f frameJob) (digests []blockDigest, err error) {
	var oldTiles [][]byte
	if d.old != nil {
		if oldTiles, err = d.oldBuf.load(d.old, f.frame); err != nil {
			return nil, err
		}
	}
	newTiles := d.newBuf.lay(f.frame, nil)
	if err := d.reader.own.decode(f.frame, f.code, oldTiles, newTiles); err != nil {
		return nil, f.named(d.schema, err)
	}
	if d.back == nil {
		digests = digestAll(newTiles)
	} else if digests, err = d.back.write(ctx, f, oldTiles, newTiles); err != nil {
		return nil, err
	}
	return digests, d.keep.around(f.block, newTiles, func() error { return store(d.sink, f.frame, newTiles) })
}

// lender returns what new tiles may be made in, not where the old ones lie.
func (d *frameDecoder) lender() lender {
	l, ok := d.sink.(lender)
	if old, same := d.old.(lender); !ok || same && old == l {
		return nil
	}
	return l
}
