package node

import (
	"context"
	"sync"
)

// patient is how often in a row work in the background makes way for a publish. Then it goes on beside one: a trainer
// that publishes more often than an anchor takes would never have one otherwise.
const patient = 3

// background is the work that a trainer does between two publishes.
type background struct {
	news chan struct{} // holds a token when there may be something to do

	mu          sync.Mutex
	cancel      context.CancelFunc // of the work under way, nil for none
	missed      int                // works in a row that made way
	asked, seen uint64             // how often work was asked for, and how much of that has been looked at
}

func newBackground() background { return background{news: make(chan struct{}, 1)} }

// wake says that there may be something to do.
func (b *background) wake() {
	b.mu.Lock()
	b.asked++
	b.mu.Unlock()
	select {
	case b.news <- struct{}{}:
	default: // said already
	}
}

// idle tells whether all that was asked for has been looked at.
func (b *background) idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen == b.asked
}

// interrupt ends the work under way, for something more urgent.
func (b *background) interrupt() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cancel != nil && b.missed < patient {
		b.missed++
		b.cancel()
		b.cancel = nil
	}
}

// do does some work, whose context ends with ctx or when it is interrupted.
func (b *background) do(ctx context.Context, work func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.mu.Lock()
	b.cancel = cancel
	asked := b.asked
	b.mu.Unlock()
	work(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cancel, b.seen = nil, asked
	if ctx.Err() == nil {
		b.missed = 0
	}
}
