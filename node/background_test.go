package node

import (
	"context"
	"testing"
	"testing/synctest"
)

// Work in the background makes way for what is urgent some times in a row, and then goes on beside it.
func TestBackgroundMakesWay(t *testing.T) {
	b := newBackground()
	interrupted := func() bool {
		cut := false
		b.do(t.Context(), func(ctx context.Context) {
			b.interrupt()
			cut = ctx.Err() != nil
		})
		return cut
	}
	for i := range patient {
		if !interrupted() {
			t.Fatalf("did not make way the %d. time", i+1)
		}
	}
	if interrupted() {
		t.Error("never gets done")
	}
	if !interrupted() {
		t.Error("makes way no more though it got something done")
	}
	b.interrupt() // nothing is under way
}

func TestBackgroundIsIdleWhenAllIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackground()
		if !b.idle() {
			t.Error("busy with nothing")
		}
		b.wake()
		b.wake() // one token says it all
		<-b.news
		if b.idle() {
			t.Error("idle before the work")
		}
		b.do(t.Context(), func(context.Context) {
			b.wake() // during the work
		})
		if b.idle() {
			t.Error("idle though work was asked for meanwhile")
		}
		<-b.news
		b.do(t.Context(), func(context.Context) {})
		if !b.idle() {
			t.Error("busy with what was done")
		}
		ended, end := context.WithCancel(t.Context())
		end()
		b.do(ended, func(ctx context.Context) {
			if ctx.Err() == nil {
				t.Error("work outlives its owner")
			}
		})
	})
}
