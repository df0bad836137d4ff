package main

import (
	"os"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/node/api"
)

// TestTrainerForgets starts a trainer whose notes are lost, while the rest of the run goes on. Nobody goes back to the
// base: what the rollouts serve stays until there is something newer.
func TestTrainerForgets(t *testing.T) {
	t.Parallel()
	s := newSettled(t, 1_000_000, 3, 1, nil)
	s.goOn()
	before := s.newest()
	rollout := s.rollouts()[0]
	s.trainer.kill()
	if err := os.RemoveAll(s.trainer.data); err != nil {
		t.Fatal(err)
	}
	s.trainer.served = nil
	s.trainer.start()
	rollout.await("meet the trainer", func(st api.Status) bool { return len(st.Peers) == 2 })
	for range 50 { // long enough for a poll, which comes every 200 ms
		time.Sleep(10 * time.Millisecond)
		s.same(before, rollout)
	}
	s.goOn()
}
