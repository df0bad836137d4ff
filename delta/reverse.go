package delta

import (
	"context"
	"io"
)

// A decoder has a frame of the old state and one of the new in hand, all that is needed to code the way back. Frames
// are decoded by several workers at once but belong into the stream in order, and each before its tiles are
// overwritten: so every frame is a turn that begins when the one before it has ended.

// turn is the place of a frame in the order.
type turn struct {
	begin <-chan struct{} // closed when the frame before is written
	end   chan<- struct{}
}

// reversing writes the stream back. Its encoding is used only in turn.
type reversing struct {
	e    *encoding
	last <-chan struct{} // end of the turn given out last
}

func newReversing(w io.Writer, schema *Schema) *reversing {
	now := make(chan struct{})
	close(now)
	return &reversing{e: newEncoding(w, schema, true), last: now}
}

// nextTurn is called in the order of the frames; a nil r has no turns to give.
func (r *reversing) nextTurn() turn {
	if r == nil {
		return turn{}
	}
	end := make(chan struct{})
	t := turn{begin: r.last, end: end}
	r.last = end
	return t
}

// worker returns what codes frames in one worker, nil where r is nil.
func (r *reversing) worker() *frameReverser {
	if r == nil {
		return nil
	}
	return &frameReverser{e: r.e, writer: newCodeWriter()}
}

// finish ends the stream, after all turns.
func (r *reversing) finish() (*Summary, error) {
	if err := r.e.finish(); err != nil {
		return nil, err
	}
	return &r.e.sum, nil
}

// frameReverser codes the way back frame by frame; it belongs to one worker.
type frameReverser struct {
	e      *encoding
	writer *codeWriter
}

// write codes the frame that leads from new tiles back to old ones and returns when it is written; the digests are
// those of the new tiles. The context ends when another worker failed, whose turn then never ends.
func (w *frameReverser) write(ctx context.Context, f frameJob, oldTiles, newTiles [][]byte) (digests []blockDigest, err error) {
	coded := codedFrame{frame: f.frame, old: digestAll(newTiles), new: digestAll(oldTiles)}
	if err := coded.take(w.writer, heldTiles{newTiles, oldTiles}, nil); err != nil {
		return nil, err
	}
	select {
	case <-f.turn.begin:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := w.e.add(coded); err != nil {
		return nil, err
	}
	close(f.turn.end)
	return coded.old, nil
}
