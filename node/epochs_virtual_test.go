package node_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
	"github.com/sparsecast/sparsecast/node/sim"
)

// Two nodes with one key are one peer to all others, who lose and find them by turns: which of them hears what, and when,
// is chance, so that only virtual time has patience enough.
func TestOfTwoTrainersWithOneKeyTheEarlierStops(t *testing.T) {
	inVirtualRun(t, trained(20_000, 4), sim.Link{Latency: time.Millisecond}, nil, func(t *testing.T, v *virtual) {
		first := v.nodes[0]
		rollout := v.start(mesh.RoleRollout, true, nil)
		v.follows(rollout, v.publish(1))
		second := v.startAs(0, mesh.RoleTrainer, true, nil)
		v.follows(rollout, v.publishAt(second, 2))
		s := v.waitFor(first, "stop", func(s api.Status) bool { return s.State == api.StateError })
		if !strings.Contains(s.Error, "own key") {
			t.Errorf("status says %q", s.Error)
		}
		v.put(first.disk, "/step.safetensors", v.steps[3])
		for _, fresh := range []bool{false, true} {
			_, err := first.Publish(t.Context(), api.PublishRequest{Path: "/step.safetensors", NewEpoch: fresh})
			var e *api.Error
			if !errors.As(err, &e) || !strings.Contains(e.Message, "another trainer with this key") || !strings.Contains(e.Hint, "restart this node to take over") {
				t.Errorf("published by the one that has stopped, in a new epoch %v: %v", fresh, err)
			}
		}
		v.follows(rollout, v.publishAt(second, 4))
	})
}
