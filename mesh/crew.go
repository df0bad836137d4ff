package mesh

import (
	"context"
	"sync"
)

// crew is the goroutines that peers cause, such as stream handlers. None starts before muster or after dismiss, so that
// whoever owns the crew can wait for all of it.
type crew struct {
	work sync.WaitGroup

	gate sync.Mutex      // guards root, and that no goroutine starts once it is gone; taken last of all locks
	root context.Context // nil while none may start
}

// muster lets goroutines start until ctx ends.
func (c *crew) muster(ctx context.Context) {
	c.gate.Lock()
	defer c.gate.Unlock()
	c.root = ctx
}

// dismiss sees to it that no goroutine starts any more.
func (c *crew) dismiss() {
	c.gate.Lock()
	defer c.gate.Unlock()
	c.root = nil
}

func (c *crew) running() bool {
	c.gate.Lock()
	defer c.gate.Unlock()
	return c.root != nil && c.root.Err() == nil
}

// spawn runs f in a goroutine of the crew. It reports false, without running it, when none may start.
func (c *crew) spawn(f func()) bool {
	c.gate.Lock()
	defer c.gate.Unlock()
	if c.root == nil || c.root.Err() != nil {
		return false
	}
	c.work.Go(f)
	return true
}
