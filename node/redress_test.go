package node

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// otherElements is a number of elements that the tensors of the base do not have.
const otherElements = 50000

// misfitNoted tells whether a node says that the config it has may not be that of the weights.
func misfitNoted(t *testing.T, n *testNode) bool {
	t.Helper()
	return slices.ContainsFunc(n.Status(t.Context()).Problems, func(p string) bool { return strings.Contains(p, "may not fit") })
}

// An engine is never told of another model than the one whose tensors it loads: a version of other tensors than the base
// has its own files beside it, over deltas and restarts, until the tensors of the base are back.
func TestOtherTensorsHaveTheirSidecars(t *testing.T) {
	for _, count := range []int{1, 2} {
		t.Run(fmt.Sprint("slots ", count), func(t *testing.T) {
			steps, wide := series(t, 4), seriesOf(t, 5, otherElements)
			mine := map[string]string{"config.json": "mine", "chat_template.jinja": "mine"}
			theirs := map[string]string{"config.json": "wide", "tokenizer.json": "wide"}
			cfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
			trainer := startNode(t, cfg)
			rolloutCfg := followerOf(t, trainer, id, checkpointDir(t, steps[0], mine))
			rolloutCfg.Slots = count
			rollout := startNode(t, rolloutCfg)
			expect := func(path, weights string, want map[string]string) {
				t.Helper()
				rollout.mustPull(t, trainer.mustPublish(t, path).Number, weights)
				mustFind(t, rollout.part.dir.Path("current"), want)
				if misfitNoted(t, rollout) {
					t.Error("a misfit is noted")
				}
			}
			expect(steps[1], steps[1], mine)
			expect(checkpointDir(t, wide[0], theirs), wide[0], theirs)
			rollout.stop()
			rollout = startNode(t, rolloutCfg) // while the other slot, if there is one, is the base's
			rollout.mustPull(t, 2, wide[0])
			mustFind(t, rollout.part.dir.Path("current"), theirs)
			expect(wide[1], wide[1], theirs)
			expect(wide[2], wide[2], theirs)
			rollout.stop()
			rollout = startNode(t, rolloutCfg)
			rollout.mustPull(t, 4, wide[2])
			mustFind(t, rollout.part.dir.Path("current"), theirs)
			expect(wide[3], wide[3], theirs)
			expect(checkpointDir(t, steps[2], map[string]string{"config.json": "published"}), steps[2], mine)
			expect(steps[3], steps[3], mine)
		})
	}
}

// Where no files come with other tensors, those of the base stay for want of better ones, and that is told.
func TestMisfitIsTold(t *testing.T) {
	steps, wide := series(t, 2), seriesOf(t, 2, otherElements)
	mine := map[string]string{"config.json": "mine"}
	cfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	trainer := startNode(t, cfg)
	rollout := startNode(t, followerOf(t, trainer, id, checkpointDir(t, steps[0], mine)))
	for i, path := range []string{wide[0], wide[1], steps[1]} {
		rollout.mustPull(t, trainer.mustPublish(t, path).Number, path)
		mustFind(t, rollout.part.dir.Path("current"), mine)
		if told := misfitNoted(t, rollout); told != (i < 2) {
			t.Errorf("version %d: a misfit is noted: %t", i+1, told)
		}
	}
}

// Newcomers get no files that belong to other tensors than theirs, neither those of the base nor those published before.
func TestFilesOfOtherTensorsDoNotTravel(t *testing.T) {
	steps, wide := series(t, 2), seriesOf(t, 1, otherElements)
	mine, theirs := map[string]string{"config.json": "mine"}, map[string]string{"config.json": "theirs"}
	for name, c := range map[string]struct {
		publish []string
		weights string
		want    map[string]string
	}{
		"of the base":      {wide, wide[0], nil},
		"published before": {[]string{checkpointDir(t, wide[0], theirs), steps[1]}, steps[1], mine},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, id := newConfig(t, mesh.RoleTrainer, checkpointDir(t, steps[0], mine))
			cfg.Anchors = anchorsAlways
			trainer := startNode(t, cfg)
			for _, path := range c.publish {
				trainer.mustPublish(t, path)
			}
			trainer.settle(t)
			newcomer := startNode(t, followerOf(t, trainer, id, ""))
			newcomer.mustPull(t, uint64(len(c.publish)), c.weights)
			mustFind(t, newcomer.part.dir.Path("current"), c.want)
		})
	}
}

// Of several states each has the files of the base, or its own, by its own tensors.
func TestSidecarsOfEachStateFit(t *testing.T) {
	steps, wide := series(t, 4), seriesOf(t, 3, otherElements)
	mine, draft := map[string]string{"config.json": "mine"}, map[string]string{"config.json": "draft", "tokenizer.json": "draft"}
	theirs := map[string]string{"config.json": "wide"}
	cfg, id := newConfig(t, mesh.RoleTrainer, "")
	cfg.Bases = paths{"policy": steps[0], "draft": steps[1]}
	trainer := startNode(t, cfg)
	rolloutCfg := followerOf(t, trainer, id, "")
	rolloutCfg.Bases = paths{"policy": checkpointDir(t, steps[0], mine), "draft": checkpointDir(t, steps[1], draft)}
	rollout := startNode(t, rolloutCfg)
	number := uint64(0)
	expect := func(weights paths, besideDraft map[string]string) {
		t.Helper()
		rollout.mustPullAll(t, number, weights)
		mustFind(t, rollout.part.dir.Path("current/policy"), mine)
		mustFind(t, rollout.part.dir.Path("current/draft"), besideDraft)
	}
	publish := func(p paths) {
		t.Helper()
		number = trainer.mustPublishAll(t, p).Number
	}
	publish(paths{"policy": checkpointDir(t, steps[1], map[string]string{"config.json": "published"}), "draft": checkpointDir(t, wide[0], theirs)})
	expect(paths{"policy": steps[1], "draft": wide[0]}, theirs)
	publish(paths{"policy": steps[2], "draft": wide[1]})
	expect(paths{"policy": steps[2], "draft": wide[1]}, theirs)
	rollout.stop()
	rollout = startNode(t, rolloutCfg)
	expect(paths{"policy": steps[2], "draft": wide[1]}, theirs)
	publish(paths{"policy": steps[3], "draft": steps[2]})
	expect(paths{"policy": steps[3], "draft": steps[2]}, draft)
}

// A base that is gone when its files are wanted again stops no update: those that travel fit its tensors, too.
func TestSidecarsWithoutTheBaseThatWas(t *testing.T) {
	steps, wide := series(t, 2), seriesOf(t, 1, otherElements)
	cfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	trainer := startNode(t, cfg)
	base := checkpointDir(t, steps[0], map[string]string{"config.json": "mine"})
	rollout := startNode(t, followerOf(t, trainer, id, base))
	rollout.waitFor(t, "the base", func(s api.Status) bool { return s.Served != nil })
	rollout.mustPull(t, trainer.mustPublish(t, checkpointDir(t, wide[0], map[string]string{"wide.json": ""})).Number, wide[0])
	try(t, os.RemoveAll(base))
	travels := map[string]string{"config.json": "published"}
	rollout.mustPull(t, trainer.mustPublish(t, checkpointDir(t, steps[1], travels)).Number, steps[1])
	mustFind(t, rollout.part.dir.Path("current"), travels)
}
