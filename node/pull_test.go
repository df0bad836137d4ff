package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// TestPullSaysWhatFailed wants why nothing came in the error of a pull that ran out of time.
func TestPullSaysWhatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		b.fail(errors.New("the disk is full"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.pull(ctx, api.PullRequest{}); err == nil || !strings.Contains(err.Error(), "the disk is full") {
			t.Errorf("got %v, want what failed", err)
		}
	})
}

// A node that starts serves what it served before it knows what is newest: a number is of no epoch then, and nothing is new
// enough for it.
func TestPullAsksNoEpochBeforeTheNewestIsKnown(t *testing.T) {
	b := newBoard()
	v := mesh.Version{Epoch: 5, Number: 3}
	b.serve(api.VersionInfo{Epoch: v.Epoch, Number: v.Number}, "/slots/a")
	for _, number := range []uint64{3, 999} {
		if ready, err := b.answer(api.PullRequest{Number: &number}); ready || err != nil {
			t.Errorf("at the start %d is ready: %t, %v", number, ready, err)
		}
	}
	latest := api.VersionInfo{Epoch: v.Epoch, Number: 4}
	b.update(func(b *board) { b.latest = &latest })
	for number, want := range map[uint64]bool{3: true, 4: false, 999: false} {
		if ready, err := b.answer(api.PullRequest{Number: &number}); ready != want || err != nil {
			t.Errorf("%d is ready: %t, %v", number, ready, err)
		}
	}
}
