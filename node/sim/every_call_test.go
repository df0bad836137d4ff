package sim

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
)

var every = flag.Bool("every", false, "in TestEveryCall take each call of the file system and not just some")

// everyCall is the plan of a quiet life in which one node dies at one call of its file system, in the midst of a publish
// and of what follows from it.
func everyCall(who int, how manner, call int) *Plan {
	link := Link{Latency: 2 * time.Millisecond}
	return &Plan{
		Seed: 1, Keep: 2, Bytes: "0", Back: 1, Full: "always", Poll: time.Second, Near: link, Far: link, Heal: 12 * time.Second,
		Boxes: []BoxPlan{
			{Name: boxName(0), Role: mesh.RoleTrainer, Cluster: "here", Base: true, Key: 0},
			{Name: boxName(1), Role: mesh.RoleRollout, Cluster: "here", Base: true, BaseFile: true, Key: 1},
			{Name: boxName(2), Role: mesh.RoleRelay, Cluster: "here", Key: 2},
		},
		Steps: []Step{
			{2 * time.Second, &publish{Change: sparse, Seed: 1}},
			{3 * time.Second, &publish{Change: dense, Seed: 2, Full: true}},
			{4 * time.Second, &publish{Change: sparse, Seed: 3}},
			{5 * time.Second, &stop{Who: who, How: how, AtCall: call, Back: time.Second}},
			{6 * time.Second, &publish{Change: sparse, Seed: 4}},
			{9 * time.Second, &publish{Change: sparse, Seed: 5}},
		},
	}
}

// Whichever call of the file system is a node's last, nothing is lost that was promised, and it goes on.
func TestEveryCall(t *testing.T) {
	for who, calls := range []int{120, 120, 60} {
		for _, how := range []manner{killed, dark} {
			t.Run(fmt.Sprint(boxName(who), " ", how), func(t *testing.T) {
				step := 7
				if testing.Short() {
					step = 41
				}
				if *every {
					step = 1
				}
				for call := 1; call <= calls && !t.Failed(); call += step {
					live(t, uint64(call), everyCall(who, how, call))
				}
			})
		}
	}
}
