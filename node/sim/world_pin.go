package sim

import (
	"context"
	"time"

	"github.com/sparsecast/sparsecast/node/api"
)

// pinWithin is how long a user waits for the answer to a command.
const pinWithin = 10 * time.Second

// pin has a user hold the node at a version some numbers behind the one that it serves. That may lead back.
func (b *box) pin(back uint64) {
	n := b.alive()
	if n == nil {
		return
	}
	s := n.Status(b.w.ctx)
	if s.Served == nil {
		return
	}
	number := s.Served.Number - min(back, s.Served.Number)
	ctx, cancel := context.WithTimeout(b.w.ctx, pinWithin)
	defer cancel()
	_, err := n.Pin(ctx, api.VersionRequest{Number: &number})
	b.w.note("%s: pin to %d: %v", b.name(), number, err)
	b.mu.Lock()
	b.pinned, b.fixed = true, nil
	b.mu.Unlock()
	if err != nil {
		return // and who knows what was noted
	}
	b.lookAtStatus(n.Status(b.w.ctx)) // what was served meanwhile is no offence
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fixed = &number
}

// unpin lets the node follow the newest version again.
func (b *box) unpin() {
	n := b.alive()
	if n == nil {
		return
	}
	b.mu.Lock()
	b.fixed = nil // whatever comes of it
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(b.w.ctx, pinWithin)
	defer cancel()
	_, err := n.Unpin(ctx)
	b.w.note("%s: unpin: %v", b.name(), err)
	if err == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.pinned = false
	}
}

// pinnedTo returns the number that the node was pinned to, nil where that is not certain.
func (b *box) pinnedTo() *uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fixed
}

// mayGoBack tells whether the node was told to serve what may be older.
func (b *box) mayGoBack() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pinned
}
