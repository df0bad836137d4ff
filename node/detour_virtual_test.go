package node_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node"
	"github.com/sparsecast/sparsecast/node/api"
	"github.com/sparsecast/sparsecast/node/sim"
)

var near = sim.Link{Latency: 20 * time.Millisecond}

// eager makes a trainer offer a shortcut to every version.
func eager(c *node.Config) { c.AnchorSlack = 0.1 }

// runAwhile has a trainer publish some versions, which a veteran follows, and returns the last with the shortcut to it.
func (v *virtual) runAwhile(veteran *virtualNode) (last api.PublishResult, shortcut mesh.Edge) {
	v.t.Helper()
	start := v.base()
	for step := range 5 {
		last = v.publish(step + 1)
		v.follows(veteran, last)
	}
	time.Sleep(10 * time.Second) // the newest catalogue is heard
	_, catalogue, _, _ := veteran.Heard().Latest()
	for _, e := range catalogue.Edges {
		if e.Base == start && e.Target == last.Root {
			return last, e
		}
	}
	v.t.Fatalf("no shortcut among %v", catalogue.Edges)
	return last, shortcut
}

// The newest shortcut is on offer, and the only host that had it is gone: a newcomer does not wait for it for long.
func TestShortcutOfADeadTrainer(t *testing.T) {
	inVirtualRun(t, trained(20_000, 5), near, eager, func(t *testing.T, v *virtual) {
		veteran := v.start(mesh.RoleRollout, true, nil)
		last, shortcut := v.runAwhile(veteran)
		if veteran.Store().Has(shortcut.Manifest) {
			t.Fatal("the veteran has the shortcut: nothing is tested")
		}
		v.nodes[0].stop()
		if took := v.follows(v.start(mesh.RoleRollout, true, nil), last); took > 8*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// A chunk that is gone may come back: it is waited for, and gone around when it does not.
func TestChunkThatNobodyHas(t *testing.T) {
	inVirtualRun(t, trained(20_000, 5), near, eager, func(t *testing.T, v *virtual) {
		last, shortcut := v.runAwhile(v.start(mesh.RoleRollout, true, nil))
		trainer := v.nodes[0]
		b, err := trainer.Store().Get(shortcut.Manifest)
		v.try(err)
		m, err := delta.DecodeManifest(b, trainer.Store().Get)
		v.try(err)
		v.try(trainer.Store().Delete(m.Chunks[0]))
		if took := v.follows(v.start(mesh.RoleRollout, true, nil), last); took < 20*time.Second || took > 30*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// A newcomer that is alone does not take that for a sign that nobody has what it wants.
func TestNobodyThereIsNoSign(t *testing.T) {
	inVirtualRun(t, trained(20_000, 5), near, eager, func(t *testing.T, v *virtual) {
		veteran := v.start(mesh.RoleRollout, true, nil)
		last, shortcut := v.runAwhile(veteran)
		veteran.stop()
		newcomer := v.start(mesh.RoleRollout, true, nil)
		for heard := false; !heard; time.Sleep(time.Millisecond) {
			_, _, _, heard = newcomer.Heard().Latest()
		}
		v.net.Partition([]string{v.nodes[0].ip}, []string{newcomer.ip}) // before a block comes through
		time.Sleep(5 * time.Minute)
		if s := newcomer.Status(t.Context()); s.State != api.StateFetching || len(s.Peers) > 0 {
			t.Errorf("%s with %d peers", s.State, len(s.Peers))
		}
		v.net.Heal()
		v.follows(newcomer, last)
		if !newcomer.Store().Has(shortcut.Manifest) {
			t.Error("went around the shortcut")
		}
	})
}

// A part of a manifest that nobody has is noticed like a chunk.
func TestLeafThatNobodyHas(t *testing.T) {
	inVirtualRun(t, trained(20_000, 1), near, nil, func(t *testing.T, v *virtual) {
		rollout := v.start(mesh.RoleRollout, true, nil)
		v.follows(rollout, v.publish(1))
		trainer := v.nodes[0]
		head, catalogue, _, _ := trainer.Heard().Latest()
		m := &delta.Manifest{
			Schema: head.Schema, Base: head.Root, Target: delta.Root{1}, Elements: 20_000, Changed: 9, Dense: 40_000, ChunkSize: delta.MinChunk,
		}
		for i := range 4000 {
			m.Chunks = append(m.Chunks, delta.Sum(fmt.Append(nil, i)))
			m.Coded += delta.MinChunk
		}
		e, err := m.Encode()
		v.try(err)
		v.try(trainer.Store().Put(e.ID(), e.Root))
		head.Version.Number++
		head.Root, head.Edge = m.Target, mesh.Edge{Manifest: e.ID(), Base: m.Base, Target: m.Target, Coded: m.Coded}
		catalogue.Seq++
		catalogue.Edges = append(catalogue.Edges, head.Edge)
		catalogue.Note(mesh.VersionRoot{Version: head.Version, Root: head.Root})
		v.try(trainer.Heard().Publish(t.Context(), head, catalogue, trainer.key))
		time.Sleep(30 * time.Second)
		leaf := delta.Sum(e.Leaves[0]).String()
		if s := rollout.Status(t.Context()); !strings.Contains(strings.Join(s.Problems, "\n"), leaf) {
			t.Errorf("says nothing of leaf %s: %+v", leaf, s)
		}
	})
}
