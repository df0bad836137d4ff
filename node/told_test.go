package node

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// What a node was told holds from the answer on, whatever a loss of power takes: a pin, its end, a confirm.
func TestWhatWasToldOutlivesLossOfPower(t *testing.T) {
	steps := series(t, 4)
	trainerCfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	trainer := startNode(t, trainerCfg)
	for _, path := range steps[1:] {
		trainer.mustPublish(t, path)
	}
	cfg, disk, _ := newMemoryConfig(t, mesh.RoleRollout, steps[0])
	cfg.Publishers, cfg.Confirm = []string{id.String()}, confirmManual
	try(t, disk.WriteFile(cfg.Bootstrap, []byte(strings.Join(trainer.addrs(), "\n")), 0o644))
	rollout := startMemory(t, cfg, disk)
	rng := rand.New(rand.NewPCG(7, 0))
	again := func() {
		disk.PowerLoss(rng)
		rollout.end()
		rollout = startMemory(t, cfg, disk)
	}
	for i := range 3 {
		number := uint64(1 + i%3)
		_, err := rollout.Pin(t.Context(), api.VersionRequest{Number: &number})
		try(t, err)
		again()
		rollout.mustSettle(t, "the pinned version", func(b *board) bool {
			return b.pin != nil && b.pin.Number == number && b.served != nil && b.served.Number == number
		})
		_, err = rollout.Confirm(t.Context(), api.VersionRequest{Number: &number})
		try(t, err)
		again()
		rollout.mustSettle(t, "what was told", func(b *board) bool {
			return b.pin != nil && b.pin.Number == number && !b.pin.Root.IsZero() && b.served != nil && b.served.Number == number && !b.unconfirmed()
		})
	}
	_, err := rollout.Unpin(t.Context())
	try(t, err)
	again()
	rollout.mustSettle(t, "the newest version", func(b *board) bool { return b.pin == nil && b.served != nil && b.served.Number == 3 })
}

// mustSettle waits until the node has made up its mind.
func (n *memoryNode) mustSettle(t *testing.T, what string, ok func(*board) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := n.board.waitFor(ctx, func(b *board) bool { return b.judged && ok(b) }); err != nil {
		t.Fatalf("waiting for %s: %v; status %+v", what, err, n.Status(t.Context()))
	}
}
