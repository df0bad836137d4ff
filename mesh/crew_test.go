package mesh

import (
	"context"
	"sync"
	"testing"
)

func TestNothingStartsOnceACrewIsDismissed(t *testing.T) {
	var c crew
	if c.spawn(func() {}) {
		t.Error("started before the muster")
	}
	c.muster(t.Context())
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for c.spawn(func() {}) {
			}
		})
	}
	c.dismiss()
	c.work.Wait() // which the race detector watches
	callers.Wait()
	ended, end := context.WithCancel(t.Context())
	end()
	if c.muster(ended); c.spawn(func() {}) || c.running() {
		t.Error("started after the end")
	}
}
