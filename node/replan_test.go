package node

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/delta/safetensors"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// impatient makes a follower give up soon what nobody can deliver.
func impatient(n *Node) {
	switch r := n.parts[0].role.(type) {
	case *rollout:
		r.patience = 300 * time.Millisecond
	case *relay:
		r.patience = 300 * time.Millisecond
	}
}

// A shortcut that only the trainer had is on offer still, and the trainer is gone: the deltas lead there, too.
func TestGoesAroundWhatNobodyHas(t *testing.T) {
	steps := series(t, 5)
	cfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	trainer := startNode(t, cfg)
	first := startNode(t, followerOf(t, trainer, id, steps[0]))
	for _, path := range steps[1:] {
		first.mustPull(t, trainer.mustPublish(t, path).Number, path)
	}
	trainer.settle(t)
	trainer.waitFor(t, "the last catalogue to be heard", func(api.Status) bool {
		_, here, _, _ := trainer.run.Latest()
		_, there, _, _ := first.run.Latest()
		return here.Seq == there.Seq
	})
	_, catalogue, _, _ := first.run.Latest()
	if lib := libraryOf(first); lib.has(catalogue.Edges[len(catalogue.Edges)-1]) {
		t.Fatal("the shortcut has been fetched: nothing is tested")
	}
	trainer.stop()
	newcomer := startNode(t, followerOf(t, first, id, steps[0]), impatient)
	newcomer.mustPull(t, 4, steps[4])
}

// Without a way around, a rollout says which block it waits for, and goes on when somebody has it.
func TestSaysWhatNobodyHas(t *testing.T) {
	steps := series(t, 2)
	cfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	cfg.Reverse = 0
	trainer := startNode(t, cfg)
	trainer.mustPublish(t, steps[1])
	trainer.settle(t)
	lib := libraryOf(trainer)
	_, catalogue, _, _ := trainer.run.Latest()
	manifests, err := lib.stored(catalogue.Edges)
	try(t, err)
	lost := manifests[0].Chunks[0]
	chunk, err := lib.store.Get(lost)
	try(t, err)
	try(t, lib.store.Delete(lost))
	rollout := startNode(t, followerOf(t, trainer, id, steps[0]), impatient)
	s := rollout.waitFor(t, "a word on what is missing", func(s api.Status) bool {
		return strings.Contains(strings.Join(s.Problems, "\n"), "no peer has it")
	})
	if text := strings.Join(s.Problems, "\n"); !strings.Contains(text, lost.String()) || s.State != api.StateFetching {
		t.Errorf("%s: %s", s.State, text)
	}
	try(t, lib.store.Put(lost, chunk))
	rollout.mustPull(t, 1, steps[1])
	if text := strings.Join(rollout.Status(t.Context()).Problems, "\n"); strings.Contains(text, "no peer has it") {
		t.Errorf("still says %q", text)
	}
}

// layered writes a checkpoint of so many layers, each coded apart, that a manifest has leaves.
func layered(t *testing.T, salt byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "layered.safetensors")
	var tensors []safetensors.Tensor
	var data [][]byte
	for i := range 1100 {
		tensors = append(tensors, safetensors.Tensor{Name: fmt.Sprintf("model.layers.%04d.w", i), DType: "BF16", Shape: []uint64{8}, Size: 16})
		b := bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 8)
		b[0] += salt
		data = append(data, b)
	}
	writeCheckpoint(t, path, tensors, data...)
	return path
}

// A member may have the root of a manifest and none of its leaves: then nobody has the edge.
func TestGoesAroundLeavesThatNobodyHas(t *testing.T) {
	base, next := layered(t, 0), layered(t, 1)
	cfg, id := newConfig(t, mesh.RoleTrainer, base)
	cfg.GroupBy = groupLayer
	trainer := startNode(t, cfg)
	_, err := trainer.Publish(t.Context(), api.PublishRequest{Path: next, Full: true})
	try(t, err)
	trainer.settle(t)
	head, _, _, _ := trainer.run.Latest()
	lib := libraryOf(trainer)
	root, err := lib.store.Get(head.Edge.Manifest)
	try(t, err)
	leaves, err := delta.LeavesOf(root)
	try(t, err)
	if len(leaves) == 0 {
		t.Fatal("the manifest has no leaves: nothing is tested")
	}
	try(t, lib.store.Delete(leaves[0]))
	follower := followerOf(t, trainer, id, base)
	follower.GroupBy = groupLayer
	startNode(t, follower, impatient).mustPull(t, 1, next)

	cfg, _ = newConfig(t, mesh.RoleRelay, "")
	cfg.Publishers, cfg.Bootstrap = follower.Publishers, follower.Bootstrap
	startNode(t, cfg, impatient).waitFor(t, "a word on what is missing", func(s api.Status) bool {
		return strings.Contains(s.Error, leaves[0].String())
	})
}
