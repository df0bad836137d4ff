package delta

import (
	"context"
	"sync"
)

// A frame in which nearly all words changed takes about 20 MiB, ten times as much as others. So only a few such frames are
// coded or decoded at a time, with scratch memory that they hand on. An anchor, all of whose frames are so, has few workers.
const (
	heavyFrames = 2
	heavyWords  = 128 << 10 // changed or raw ones, from which on a frame is heavy
)

var heavyPlaces = make(chan struct{}, heavyFrames)

// scratch is what a worker codes or decodes frames with: its own, or one that heavy frames hand on.
type scratch[T any] struct {
	own     *T
	big     *sync.Pool
	now     *T   // big one, of a frame that has a place
	expects bool // the frame before had one
}

// begin returns what to take for the next frame. End follows.
func (s *scratch[T]) begin(ctx context.Context) (*T, error) {
	if !s.expects {
		return s.own, nil
	}
	return s.enter(ctx)
}

// weigh hears how many words are to be held, and returns what to go on with once they are many, which is nothing new if
// it is nil.
func (s *scratch[T]) weigh(ctx context.Context, words int) (*T, error) {
	if s.expects = words >= heavyWords; s.expects && s.now == nil {
		return s.enter(ctx)
	}
	return nil, nil
}

// enter waits for a place. Who has one never waits for a frame that may want one.
func (s *scratch[T]) enter(ctx context.Context) (*T, error) {
	select {
	case heavyPlaces <- struct{}{}:
		s.now = s.big.Get().(*T)
		return s.now, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *scratch[T]) end() {
	if s.now != nil {
		s.big.Put(s.now)
		s.now = nil
		<-heavyPlaces
	}
}

var (
	bigWriters = sync.Pool{New: func() any { return newCodeWriter() }}
	bigReaders = sync.Pool{New: func() any { return newCodeReader() }}
)

func newWriterScratch() scratch[codeWriter] {
	return scratch[codeWriter]{own: newCodeWriter(), big: &bigWriters}
}

func newReaderScratch() scratch[codeReader] {
	return scratch[codeReader]{own: newCodeReader(), big: &bigReaders}
}
