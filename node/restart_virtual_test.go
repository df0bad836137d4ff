package node_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node"
	"github.com/sparsecast/sparsecast/node/sim"
)

// shaken returns the states of a bf16 tensor of which a quarter moves at each step, up or down.
func shaken(elements, steps int) [][]byte {
	rng := rand.New(rand.NewPCG(4, 1))
	data := make([]byte, 2*elements)
	for i := range elements {
		data[2*i], data[2*i+1] = 0x80, 0x3c+byte(rng.Uint32()%2)
	}
	states := [][]byte{slices.Clone(data)}
	for range steps {
		for i := 0; i < len(data); i += 2 {
			if rng.IntN(4) == 0 {
				data[i] += byte(1 - 2*rng.IntN(2))
			}
		}
		states = append(states, slices.Clone(data))
	}
	return states
}

// A rollout that is killed again and again before a delta is here, while newer versions come faster than its link carries
// them, goes on where it was: newer versions are brought up all the same. What comes beside them is no more than a
// newcomer's way, and the store stays in proportion to the offer. A kill costs more than what was on its way: for a while
// the link is still busy with that.
func TestKilledAgainAndAgainOnASlowLink(t *testing.T) {
	const (
		versions = 40
		interval = 20 * time.Second
		ratio    = 3
		life     = 40 * time.Second
	)
	steps := shaken(4_000_000, versions)
	for _, keep := range []int{1, 4} {
		t.Run(fmt.Sprint("keep ", keep), func(t *testing.T) {
			inVirtualRun(t, steps, near, func(c *node.Config) { c.Keep = keep }, func(t *testing.T, v *virtual) {
				rollout := v.start(mesh.RoleRollout, true, nil)
				first := v.publish(1)
				v.follows(rollout, first)
				rate := float64(first.Coded) / (ratio * interval.Seconds())
				v.net.SetLink(v.nodes[0].ip, rollout.ip, sim.Link{Latency: near.Latency, Bandwidth: int64(rate)})
				before, _ := rollout.received()
				served, born := uint64(1), time.Now()
				var kills, switches int
				var got, used, way uint64
				for step := 2; step <= versions; step++ {
					v.publish(step)
					way = max(way, v.leastBytes(v.base()))
					for range 8 {
						time.Sleep(interval / 8)
						s := rollout.Status(t.Context())
						if s.Served != nil && s.Served.Number != served {
							served, used, switches = s.Served.Number, used+s.Served.Coded, switches+1
						}
						var offer uint64
						for _, kind := range s.Offer {
							offer += kind.Bytes
						}
						if s.Store.Bytes > 3*offer && offer > 0 {
							t.Fatalf("%d bytes in the store, %d on offer", s.Store.Bytes, offer)
						}
						if time.Since(born) >= life {
							now, _ := rollout.received()
							got, before = got+now-before, 0
							v.restart(rollout)
							born, kills = time.Now(), kills+1
						}
					}
				}
				t.Logf("killed %d times, serves %d of %d after %d switches; %d bytes came, %d of them brought up, a newcomer's way takes %d",
					kills, served, versions, switches, got, used, way)
				if switches < 3 {
					t.Errorf("%d switches while killed %d times", switches, kills)
				}
				if wasted := float64(got) - float64(used); wasted > 1.25*float64(way) {
					t.Errorf("%.0f bytes came beside what was brought up, a newcomer's way takes %d", wasted, way)
				}
			})
		})
	}
}
