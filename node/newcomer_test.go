package node_test

import (
	"context"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node"
	"github.com/sparsecast/sparsecast/node/api"
	"github.com/sparsecast/sparsecast/node/sim"
	"pgregory.net/rapid"
)

// A newcomer fetches hardly more than the least that leads to the newest version, all blocks counted, and where others
// have been helped before it takes most of that from them.
func TestNewcomerFetchesLittle(t *testing.T) {
	const versions = 40
	steps := trained(200_000, versions)
	generous := func(c *node.Config) { c.Keep, c.Anchors = 12, "always" }
	slow := sim.Link{Latency: 20 * time.Millisecond, Bandwidth: 100_000}
	inVirtualRun(t, steps, slow, generous, func(t *testing.T, v *virtual) {
		veteran := v.start(mesh.RoleRollout, true, nil)
		start := v.base()
		var last api.PublishResult
		for step := range versions {
			last = v.publish(step + 1)
			if step%4 == 0 {
				v.follows(veteran, last)
			}
		}
		v.follows(veteran, last)
		for _, base := range []bool{true, false} {
			held := []delta.Root{{}}
			if base {
				held = append(held, start)
			}
			least := v.leastBytes(held...)
			first := v.start(mesh.RoleRollout, base, nil)
			took := v.follows(first, last)
			total, source := first.received()
			t.Logf("base %v: %d bytes in %v, %d from the trainer; the least is %d", base, total, took, source, least)
			if float64(total) > 1.1*float64(least) {
				t.Errorf("received %d bytes, the least is %d", total, least)
			}
			next := v.start(mesh.RoleRollout, base, nil)
			took = v.follows(next, last)
			total, source = next.received()
			t.Logf("the next one: %d bytes in %v, %d from the trainer", total, took, source)
			if float64(total) > 1.1*float64(least) || 2*source >= total {
				t.Errorf("the next one received %d bytes, %d of them from the trainer, the least is %d", total, source, least)
			}
		}
	})
}

// received returns the bytes of all blocks that came here, and of those from the trainer.
func (n *virtualNode) received() (total, source uint64) {
	s := n.Status(context.Background())
	for _, p := range s.Peers {
		if p.Role == string(mesh.RoleTrainer) {
			source = p.Received
		}
	}
	return s.Counters["chunk_bytes_received"], source
}

// leastBytes tries every path through the trainer's catalogue and returns the least bytes that bring the newest version
// to whoever holds some states: those of all blocks but outboards, each once.
func (v *virtual) leastBytes(held ...delta.Root) (least uint64) {
	v.t.Helper()
	trainer := v.nodes[0]
	head, catalogue, _, _ := trainer.Heard().Latest()
	blocks := make(map[mesh.Edge]map[cid.Cid]uint64)
	for _, e := range catalogue.Edges {
		blocks[e] = v.blocksOf(trainer.Store(), e)
	}
	least = math.MaxUint64
	var walk func(at delta.Root, seen []delta.Root, had map[cid.Cid]uint64)
	walk = func(at delta.Root, seen []delta.Root, had map[cid.Cid]uint64) {
		var sum uint64
		for _, n := range had {
			sum += n
		}
		if sum >= least {
			return
		}
		if at == head.Root {
			least = sum
			return
		}
		for _, e := range catalogue.Edges {
			if e.Base == at && !slices.Contains(seen, e.Target) {
				more := maps.Clone(had)
				maps.Copy(more, blocks[e])
				walk(e.Target, append(slices.Clone(seen), e.Target), more)
			}
		}
	}
	for _, r := range held {
		walk(r, held, map[cid.Cid]uint64{})
	}
	return least
}

// blocksOf returns the blocks that a host fetches for an edge, with their sizes.
func (v *virtual) blocksOf(store mesh.Store, e mesh.Edge) map[cid.Cid]uint64 {
	v.t.Helper()
	root, err := store.Get(e.Manifest)
	v.try(err)
	leaves, err := delta.LeavesOf(root)
	v.try(err)
	m, err := delta.DecodeManifest(root, store.Get)
	v.try(err)
	sizes := make(map[cid.Cid]uint64)
	for _, id := range slices.Concat([]cid.Cid{e.Manifest, m.Schema}, leaves, m.Chunks) {
		b, err := store.Get(id)
		v.try(err)
		sizes[id] = uint64(len(b))
	}
	return sizes
}

// Whatever is published under whatever limits, newcomers get to the newest version.
func TestNewcomersAlwaysFindAWay(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		keep, reverse := rapid.IntRange(1, 4).Draw(r, "keep"), rapid.IntRange(0, 3).Draw(r, "reverse")
		slack := rapid.SampledFrom([]float64{0.1, 0.5, 5}).Draw(r, "slack")
		bytes := rapid.SampledFrom([]string{"0", "1", "1kB", "4kB", "20kB"}).Draw(r, "keep_bytes")
		steps := rapid.SliceOfN(rapid.IntRange(1, 6), 1, 8).Draw(r, "steps") // the same weights may come again
		limits := func(c *node.Config) {
			c.Keep, c.Reverse, c.Anchors, c.AnchorSlack, c.KeepBytes = keep, reverse, "always", slack, bytes
		}
		inVirtualRun(t, trained(5000, 6), sim.Link{Latency: time.Millisecond}, limits, func(t *testing.T, v *virtual) {
			var last api.PublishResult
			for _, step := range steps {
				last = v.publish(step)
			}
			for _, base := range []bool{true, false} {
				v.follows(v.start(mesh.RoleRollout, base, nil), last)
			}
		})
		if t.Failed() {
			r.FailNow() // so that it says what it drew
		}
	})
}
