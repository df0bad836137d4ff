package node_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node"
	"github.com/sparsecast/sparsecast/node/api"
	"github.com/sparsecast/sparsecast/node/sim"
)

// wavering returns the states of a bf16 tensor of which a sixth goes to and fro across a rounding boundary, each element
// at one step in eight: a shortcut over any number of steps costs about as much as two.
func wavering(elements, steps int) [][]byte {
	rng := rand.New(rand.NewPCG(4, 0))
	data := make([]byte, 2*elements)
	for i := range elements {
		data[2*i], data[2*i+1] = byte(rng.Uint32())&^1, 0x3c+byte(rng.Uint32()%2)
	}
	states := [][]byte{slices.Clone(data)}
	for range steps {
		for i := 0; i < elements; i += 6 {
			if rng.IntN(8) == 0 {
				data[2*i] ^= 1
			}
		}
		states = append(states, slices.Clone(data))
	}
	return states
}

// A delta takes half as long again to fetch as there is between two publishes. A newer version is brought up again and
// again all the same, each after no longer than a newcomer's way from the base takes to fetch: what is served is never
// older than twice that. Beside what was brought up no more is fetched than one such way. The allowance is for what else
// goes over the link: announcements, manifests, and what was asked for before a download was left.
func TestLinkSlowerThanThePublishes(t *testing.T) {
	for _, keep := range []int{1, 4} {
		t.Run(fmt.Sprintf("keep %d", keep), func(t *testing.T) {
			inVirtualRun(t, slowSteps(), near, func(c *node.Config) { c.Keep = keep }, func(t *testing.T, v *virtual) {
				rollout := v.start(mesh.RoleRollout, true, nil)
				slowly{v: v, from: v.nodes[0], to: rollout, rollout: rollout}.follows(t)
			})
		})
	}
}

const (
	slowVersions = 40
	slowInterval = 4 * time.Second
)

func slowSteps() [][]byte { return wavering(2_000_000, slowVersions+1) }

// slowly is a rollout that follows a trainer over a link that is slower than the publishes.
type slowly struct {
	v        *virtual
	from, to *virtualNode // what the link connects
	rollout  *virtualNode
}

// follows publishes again and again, and demands of the rollout that it follows as well as it can.
func (s slowly) follows(t *testing.T) {
	const (
		ratio     = 1.5
		allowance = 3 * slowInterval
	)
	v, rollout := s.v, s.rollout
	first := v.publish(1)
	v.follows(rollout, first)
	rate := float64(first.Coded) / (ratio * slowInterval.Seconds()) // bytes a second
	v.net.SetLink(s.from.ip, s.to.ip, sim.Link{Latency: near.Latency, Bandwidth: int64(rate)})
	var way, told, used float64 // the longest way of a newcomer in bytes, and what was brought up
	before, _ := s.to.received()
	published := map[uint64]time.Time{1: time.Now()}
	served, since := uint64(1), time.Now()
	for step := 2; step <= slowVersions; step++ {
		r := v.publish(step)
		published[r.Number] = time.Now()
		way = max(way, float64(v.leastBytes(v.base())))
		for range 8 {
			time.Sleep(slowInterval / 8)
			status := rollout.Status(t.Context())
			if status.Served.Number != served {
				served, since = status.Served.Number, time.Now()
				used += float64(status.Served.Coded)
			}
			fetch := time.Duration(1.25 * way / rate * float64(time.Second))
			if age := time.Since(published[served+1]); served < r.Number && age > 2*fetch+allowance {
				t.Fatalf("serves %d, and the next one is %v old; a newcomer's way takes %v", served, age, fetch)
			}
			if d := time.Since(since); served < r.Number && d > fetch+allowance {
				t.Fatalf("serves %d for %v; a newcomer's way takes %v", served, d, fetch)
			}
			if isSlow(status) {
				told++
			}
		}
	}
	got, _ := s.to.received()
	t.Logf("serves %d of %d; %d bytes came, %.0f of them brought up, a newcomer's way takes %.0f; said to be slow in %.0f of %d looks",
		served, slowVersions, got-before, used, way, told, 8*(slowVersions-1))
	if wasted := float64(got-before) - used; wasted > 1.25*way {
		t.Errorf("%.0f bytes came beside what was brought up, a newcomer's way takes %.0f", wasted, way)
	}
	if told < 4*slowVersions {
		t.Errorf("the link was said to be slow in %.0f of %d looks", told, 8*slowVersions)
	}
	v.net.SetLink(s.from.ip, s.to.ip, near)
	v.follows(rollout, v.publish(slowVersions+1))
	time.Sleep(slowInterval)
	if s := rollout.Status(t.Context()); isSlow(s) {
		t.Errorf("on a fast link: %q", s.Problems)
	}
}

// A trainer opens a new epoch with every publish, as one does that is started again and again, and a delta takes longer to
// fetch than there is between two publishes: newer versions are brought up all the same.
func TestNewEpochsOnASlowLink(t *testing.T) {
	const (
		versions = 40
		ratio    = 1.5
	)
	inVirtualRun(t, slowSteps(), near, nil, func(t *testing.T, v *virtual) {
		rollout := v.start(mesh.RoleRollout, true, nil)
		first := v.publish(1)
		v.follows(rollout, first)
		rate := float64(first.Coded) / (ratio * slowInterval.Seconds())
		v.net.SetLink(v.nodes[0].ip, rollout.ip, sim.Link{Latency: near.Latency, Bandwidth: int64(rate)})
		served, switches := uint64(1), 0
		var last api.PublishResult
		for step := 2; step <= versions; step++ {
			last = v.publishAs(v.nodes[0], step, api.PublishRequest{NewEpoch: true})
			time.Sleep(slowInterval)
			if s := rollout.Status(t.Context()); s.Served.Number != served {
				served, switches = s.Served.Number, switches+1
			}
		}
		t.Logf("serves %d of %d after %d switches", served, versions, switches)
		if switches < 3 || served < versions/4 {
			t.Errorf("serves %d of %d after %d switches", served, versions, switches)
		}
		v.net.SetLink(v.nodes[0].ip, rollout.ip, near)
		v.follows(rollout, last)
	})
}

func isSlow(s api.Status) bool {
	return strings.Contains(strings.Join(s.Problems, "\n"), "slower than the publishes")
}

// A full disk is no reason to stop serving the only copy of the weights: it is not touched while what must lie beside a
// change in place would not fit.
func TestOneSlotOnAFullDiskServesOn(t *testing.T) {
	inVirtualRun(t, trained(20_000, 3), near, nil, func(t *testing.T, v *virtual) {
		rollout := v.start(mesh.RoleRollout, true, func(c *node.Config) { c.Slots = 1 })
		first := v.publish(1)
		v.follows(rollout, first)
		rollout.disk.SetLimit(rollout.disk.Used() + 30_000) // enough to fetch the next version
		last := v.publish(2)
		v.waitFor(rollout, "say that there is no room", func(s api.Status) bool {
			return s.State == api.StateError && strings.Contains(s.Error, "free some space")
		})
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			if s := rollout.Status(t.Context()); s.Served == nil || s.Served.Root != first.Root {
				t.Fatalf("serves %+v; status %+v", s.Served, s)
			}
		}
		rollout.disk.SetLimit(0)
		v.follows(rollout, last)
	})
}
