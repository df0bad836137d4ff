package node

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		try(t, g.enter(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := g.enter(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("two are in: %v", err)
		}
		time.AfterFunc(time.Minute, g.leave)
		try(t, g.enter(t.Context()))
		g.leave()
	})
}
