package delta

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// streamMagic and the encoder's profile open the stream of every group. The last byte of the magic is the version of the
// format; the profile names the choices of the encoder, which no decoder need know.
const (
	streamMagic = "SPCAST\x00\x03"
	streamHead  = streamMagic + "\x01"
)

// EncodeOptions are the choices of an encoder that do not shape its stream.
type EncodeOptions struct {
	Copy     Sink               // if set, receives the new state as it was read, so that it needs to be read only once
	Progress func(dense uint64) // if set, hears the bytes of the new state that have been read
	Sidecars []Attachment       // files that travel with an anchor; they are no part of the stream, WriteEdge sends them
}

// Summary says what a stream holds.
type Summary struct {
	Base        Root // of the old state as it was read; zero for an anchor
	Target      Root
	Elements    uint64
	Changed     uint64
	Dense       uint64   // bytes of the new state
	Coded       uint64   // bytes of the streams of all groups
	Groups      []uint64 // bytes of the stream of each group
	Frames      []uint32 // bytes of the code of each frame
	BaseDigests *Digests // nil for an anchor
	Digests     *Digests // of the new state
}

// Encode writes to w the streams, one after the other for every group, that lead from old to new, which have one
// schema. A nil old makes an anchor. Each state is read once, and samples of it before; memory stays bounded whatever their size.
func Encode(ctx context.Context, w io.Writer, old, new State, opt EncodeOptions) (Summary, error) {
	schema := new.Schema()
	if old != nil && !old.Schema().ID().Equals(schema.ID()) {
		return Summary{}, fmt.Errorf("encode: the states have different schemas; code an anchor instead")
	}
	e := newEncoding(w, schema, old != nil)
	err := inOrder(ctx, workersFor(old == nil),
		func(yield func(frame) bool) error { frames(schema)(yield); return nil },
		func() func(context.Context, frame) (codedFrame, error) {
			c := &stateEncoder{old: old, new: new, copied: opt.Copy, writer: newWriterScratch()}
			return c.encode
		},
		func(f codedFrame) error {
			err := e.add(f)
			report(opt.Progress, e.sum.Dense)
			return err
		})
	if err == nil {
		err = e.finish()
	}
	if err != nil {
		return Summary{}, fmt.Errorf("encode: %w", err)
	}
	return e.sum, nil
}

// encoding is the ordered end of an encoder: it writes frames and sums up what they hold.
type encoding struct {
	w      io.Writer
	schema *Schema
	sum    Summary
}

func newEncoding(w io.Writer, schema *Schema, withBase bool) *encoding {
	e := &encoding{w: w, schema: schema, sum: Summary{Digests: &Digests{}}}
	if withBase {
		e.sum.BaseDigests = &Digests{}
	}
	return e
}

// write counts b for the group whose stream is open.
func (e *encoding) write(b []byte) error {
	n, err := e.w.Write(b)
	e.sum.Coded += uint64(n)
	e.sum.Groups[len(e.sum.Groups)-1] += uint64(n)
	if err != nil {
		return fmt.Errorf("write stream: %w", err)
	}
	return nil
}

// open begins the streams of all groups up to g. A group without elements has a stream without frames.
func (e *encoding) open(g int) error {
	for len(e.sum.Groups) <= g {
		e.sum.Groups = append(e.sum.Groups, 0)
		if err := e.write([]byte(streamHead)); err != nil {
			return err
		}
	}
	return nil
}

// add writes the next frame, in one call of Write, and lets go of its code.
func (e *encoding) add(f codedFrame) error {
	if err := e.open(f.group); err != nil {
		return err
	}
	e.sum.Digests.blocks = append(e.sum.Digests.blocks, f.new...)
	if e.sum.BaseDigests != nil {
		e.sum.BaseDigests.blocks = append(e.sum.BaseDigests.blocks, f.old...)
	}
	for _, t := range f.tiles {
		e.sum.Elements += uint64(t.words())
	}
	e.sum.Dense += f.dense()
	e.sum.Changed += f.changed
	e.sum.Frames = append(e.sum.Frames, uint32(len(f.code)-f.head))
	err := e.write(f.code)
	giveBuffer(f.code)
	return err
}

func (e *encoding) finish() (err error) {
	if err := e.open(len(e.schema.groups) - 1); err != nil {
		return err
	}
	if e.sum.Target, err = e.sum.Digests.Root(e.schema); err != nil {
		return err
	}
	if e.sum.BaseDigests != nil {
		e.sum.Base, err = e.sum.BaseDigests.Root(e.schema)
	}
	return err
}

// codedFrame is a frame as a worker hands it on.
type codedFrame struct {
	frame
	code     []byte // behind its length, as it stands in the stream
	head     int    // bytes of that length
	changed  uint64
	old, new []blockDigest
}

// take codes the tiles of the frame.
func (f *codedFrame) take(w *codeWriter, tiles tileSource, weigh func(changed int) (*codeWriter, error)) error {
	code, changed, err := w.put(f.frame, tiles, weigh)
	if err != nil {
		return err
	}
	f.changed = changed
	f.code = slices.Grow(takeBuffer(), binary.MaxVarintLen32+len(code))
	f.code = binary.AppendUvarint(f.code, uint64(len(code)))
	f.head = len(f.code)
	f.code = append(f.code, code...)
	return nil
}

// stateEncoder codes frames of states. It belongs to one worker, which holds one tile of each state at a time, and hashes
// them while they are in the cache.
type stateEncoder struct {
	old, new State
	copied   Sink // receives the new state, unless it is nil
	writer   scratch[codeWriter]

	coded                codedFrame
	oldBuf, newBuf       frameBuffer
	oldSample, newSample frameBuffer
}

func (c *stateEncoder) encode(ctx context.Context, f frame) (codedFrame, error) {
	c.coded = codedFrame{frame: f}
	w, err := c.writer.begin(ctx)
	if err != nil {
		return c.coded, err
	}
	defer c.writer.end()
	var weigh func(int) (*codeWriter, error)
	if c.old != nil {
		weigh = func(changed int) (*codeWriter, error) { return c.writer.weigh(ctx, changed) }
	}
	err = c.coded.take(w, c, weigh)
	return c.coded, err
}

func (c *stateEncoder) tile(i int) (old, new []byte, err error) {
	t := c.coded.tiles[i]
	if new, err = c.newBuf.loadOne(c.new, t); err != nil {
		return nil, nil, err
	}
	c.coded.new = append(c.coded.new, digestBlock(new))
	if c.copied != nil {
		if err := storeTile(c.copied, t, new); err != nil {
			return nil, nil, err
		}
	}
	if c.old != nil {
		if old, err = c.oldBuf.loadOne(c.old, t); err != nil {
			return nil, nil, err
		}
		c.coded.old = append(c.coded.old, digestBlock(old))
	}
	return old, new, nil
}

func (c *stateEncoder) sample(i, off, size int) (old, new []byte, err error) {
	t := c.coded.tiles[i]
	t.off, t.size = t.off+int64(off), size
	if new, err = c.newSample.loadOne(c.new, t); err == nil && c.old != nil {
		old, err = c.oldSample.loadOne(c.old, t)
	}
	return old, new, err
}
