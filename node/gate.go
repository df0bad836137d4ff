package node

import "context"

// gate lets one in at a time, as a mutex does, but nobody has to wait for longer than a context lasts.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

// enter waits until nobody is in. Leave follows, unless it fails.
func (g gate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g gate) leave() { <-g }
