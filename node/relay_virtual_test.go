package node_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node"
	"github.com/sparsecast/sparsecast/node/api"
)

// A rollout that only a relay connects to the trainer gets on as one with a slow link of its own, whichever of the two
// links is the slow one: the relay gets, before anything else, what the rollout is fetching, and keeps it for that long.
func TestRelayOnALinkSlowerThanThePublishes(t *testing.T) {
	for _, keep := range []int{1, 4} {
		for _, behind := range []bool{false, true} {
			t.Run(fmt.Sprintf("keep %d, slow behind the relay %v", keep, behind), func(t *testing.T) {
				inVirtualRun(t, slowSteps(), near, func(c *node.Config) { c.Keep = keep }, func(t *testing.T, v *virtual) {
					relay, rollout := v.startBehindRelay()
					s := slowly{v: v, from: v.nodes[0], to: relay, rollout: rollout}
					if behind {
						s.from, s.to = relay, rollout
					}
					s.follows(t)
					for _, p := range rollout.Status(t.Context()).Peers {
						if p.ID != relay.id.String() {
							t.Errorf("the rollout is connected to %s, too: nothing is tested", p.ID)
						}
					}
				})
			})
		}
	}
}

// startBehindRelay starts a relay, and a rollout that only the relay connects to the trainer.
func (v *virtual) startBehindRelay() (relay, rollout *virtualNode) {
	v.t.Helper()
	relay = v.start(mesh.RoleRelay, false, nil)
	return relay, v.startOutOfReach()
}

// startOutOfReach starts a rollout that neither reaches the trainer nor is reached by it.
func (v *virtual) startOutOfReach() *virtualNode {
	v.t.Helper()
	trainer, next := v.nodes[0].ip, v.nextIP()
	v.net.Refuse(next, trainer, true)
	v.net.Refuse(trainer, next, true)
	return v.start(mesh.RoleRollout, true, nil)
}

// A block that rots at a relay is fetched anew for whoever wants it, also when nothing new is published.
func TestRelayLosesABlock(t *testing.T) {
	inVirtualRun(t, trained(20_000, 1), near, nil, func(t *testing.T, v *virtual) {
		relay := v.start(mesh.RoleRelay, false, nil)
		r := v.publish(1)
		v.waitFor(relay, "hold the version", func(s api.Status) bool { return s.Served != nil && s.Served.Number == r.Number })
		time.Sleep(time.Minute)
		head, _, _, _ := relay.Heard().Latest()
		b, err := relay.Store().Get(head.Edge.Manifest)
		v.try(err)
		m, err := delta.DecodeManifest(b, relay.Store().Get)
		v.try(err)
		v.try(relay.Store().Delete(m.Chunks[0]))
		if took := v.follows(v.startOutOfReach(), r); took > 10*time.Second {
			t.Errorf("took %v", took)
		}
	})
}
