package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
	"github.com/sparsecast/sparsecast/node/files"
	"github.com/sparsecast/sparsecast/node/files/faults"
	"pgregory.net/rapid"
)

// A rollout with one slot goes back, and back again, with the trainer and all peers gone, also after a restart.
func TestOneSlotGoesBackAlone(t *testing.T) {
	steps := series(t, 6)
	trainerCfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	trainerCfg.Reverse = 0
	trainer := startNode(t, trainerCfg)
	cfg := followerOf(t, trainer, id, steps[0])
	cfg.Slots, cfg.Reverse = 1, 2
	rollout := startNode(t, cfg)
	for _, path := range steps[1:] {
		rollout.mustPull(t, trainer.mustPublish(t, path).Number, path)
	}
	back := func(number uint64) {
		t.Helper()
		got := rollout.stats.ChunkBytesReceived.Load()
		rollout.mustPin(t, number)
		rollout.mustServe(t, number, steps[number])
		if more := rollout.stats.ChunkBytesReceived.Load() - got; more > 0 {
			t.Errorf("went back to %d by %d bytes of others", number, more)
		}
	}
	back(4)
	rollout.Unpin(t.Context())
	rollout.mustServe(t, 5, steps[5])
	trainer.stop()
	back(4)
	rollout.stop()
	rollout = startNode(t, cfg)
	rollout.mustServe(t, 4, steps[4])
	back(3)
	back(2) // further than the ways lead: from the base, by deltas that are still here
	rollout.Unpin(t.Context())
	rollout.mustServe(t, 5, steps[5])
	wantOneCopy(t, cfg)
}

// Ways back that are of no use go, with their blocks, and so do those that lost a block.
func TestWaysAreForgotten(t *testing.T) {
	steps := series(t, 6)
	trainer, rollout := pairUp(t, steps[0], func(c *Config) { c.Slots, c.Reverse = 1, 1 })
	kept := func() mesh.Edge {
		t.Helper()
		list, err := loadWays(rollout.part.dir)
		if err != nil || len(list) != 1 {
			t.Fatalf("%d ways back, %v", len(list), err)
		}
		return list[0].Edge
	}
	var first mesh.Edge
	for i, path := range steps[1:5] {
		rollout.mustPull(t, trainer.mustPublish(t, path).Number, path)
		if i == 2 {
			first = kept()
		}
	}
	last := kept()
	if last == first || last.Target != rootOf(t, steps[3]) {
		t.Errorf("kept the way to %s", last.Target.Short())
	}
	store := rollout.store
	rollout.waitFor(t, "old blocks to go", func(api.Status) bool { return !store.Has(first.Manifest) || offersNow(rollout, first) })
	m, err := library{store: store}.stored([]mesh.Edge{last})
	try(t, err)
	rollout.stop()
	try(t, store.Delete(m[0].Chunks[0]))
	rollout = startNode(t, rollout.cfg)
	rollout.mustPull(t, trainer.mustPublish(t, steps[5]).Number, steps[5])
	if now := kept(); now == last {
		t.Error("a way back without its chunk is kept")
	}
}

func offersNow(n *testNode, e mesh.Edge) bool {
	return slices.Contains(offered(headOf(n.part), catalogueOf(n.part)), e)
}

// TestOneSlotUndone kills a rollout with one slot anywhere, takes everything else from it that it could go on with, kills it
// once more while it heals, and wants the version back that it had, or the next one. After a loss of power that cannot be
// promised, but no engine loads a mixture.
func TestOneSlotUndone(t *testing.T) {
	c := newCast(t, 3)
	news := c.record(t)
	undone := 0
	everyCrash(t, func(t *testing.T, at crash) int {
		v := c.enter(t, mesh.RoleRollout)
		v.cfg.Slots = 1
		served := 0
		changes, crashed := v.live(t, at, func(ctx context.Context, n *part) error {
			var err error
			served, err = follow(ctx, c, v, n, news[:4])
			return err
		})
		if !crashed || served == 0 {
			return changes
		}
		if !at.power {
			m := v.disk.Mount()
			try(t, m.RemoveAll("/base"))
			try(t, m.RemoveAll("/data/blocks"))
			m.Kill()
		}
		settle := func(ctx context.Context, n *part) error {
			if at.power {
				time.Sleep(5 * time.Minute)
				_, err := v.shown(c)
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			if err := n.board.waitFor(ctx, func(b *board) bool { return b.served != nil }); err != nil {
				return fmt.Errorf("nothing is served: %w", err)
			}
			if got, err := v.shown(c); err != nil || got != served && got != served+1 {
				return fmt.Errorf("shows %d, served was %d: %w", got, served, err)
			}
			return nil
		}
		if !at.power {
			v.live(t, crash{nth: 1 + at.nth*13%23, torn: at.torn}, settle)
		}
		v.live(t, crash{}, settle)
		if strings.Contains(v.log.String(), "undid an update in place") {
			undone++
		}
		return changes
	})
	if undone == 0 && !testing.Short() && !underRace {
		t.Error("no update in place was ever undone")
	}
}

func drawWays(t *rapid.T) []wayBack {
	states := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
	way := rapid.Custom(func(t *rapid.T) wayBack {
		base := states.Draw(t, "base")
		target := states.Filter(func(s string) bool { return s != base }).Draw(t, "target")
		return wayBack{
			Edge:    edge(base, target, rapid.Uint64Range(0, 3).Draw(t, "coded")),
			Version: mesh.Version{Epoch: rapid.Uint64Range(0, 2).Draw(t, "epoch"), Number: rapid.Uint64Range(0, 2).Draw(t, "number")},
		}
	})
	return rapid.SliceOfN(way, 0, 8).Draw(t, "ways")
}

// What is noted comes back as it was, and damage is noticed wherever it is.
func TestWaysNote(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		disk := faults.NewDisk(time.Now)
		dir, err := files.Open(disk.Mount(), "/data")
		if err != nil {
			rt.Fatal(err)
		}
		list := drawWays(rt)
		if err := saveWays(dir, list); err != nil {
			rt.Fatal(err)
		}
		if got, err := loadWays(dir); err != nil || !slices.Equal(got, list) {
			rt.Fatalf("noted %v, got %v, %v", list, got, err)
		}
		b, err := disk.ReadFile("/data/" + waysFile)
		if err != nil {
			rt.Fatal(err)
		}
		if rapid.Bool().Draw(rt, "cut") {
			err = disk.Truncate("/data/"+waysFile, rapid.Int64Range(0, int64(len(b))-2).Draw(rt, "at"))
		} else {
			err = disk.FlipBit("/data/"+waysFile, rapid.Int64Range(0, int64(len(b))*8-9).Draw(rt, "bit"))
		}
		if err != nil {
			rt.Fatal(err)
		}
		if got, err := loadWays(dir); err == nil {
			rt.Fatalf("damaged, but read as %v", got)
		}
	})
}

func TestWaysNoteRefuses(t *testing.T) {
	loop := edge("a", "a", 1)
	for name, list := range map[string][]wayBack{
		"no manifest": {{Edge: mesh.Edge{Base: root("a"), Target: root("b")}}},
		"an anchor":   {{Edge: edge("0", "b", 1)}},
		"to nothing":  {{Edge: edge("b", "0", 1)}},
		"a loop":      {{Edge: loop}},
		"too many":    make([]wayBack, maxKeep+1),
	} {
		dir, err := files.Open(faults.NewDisk(time.Now).Mount(), "/data")
		try(t, err)
		try(t, saveWays(dir, list))
		if _, err := loadWays(dir); err == nil {
			t.Errorf("%s: read all the same", name)
		}
	}
}

// What is kept is bounded, in order, and leads somewhere from what is held; what is dropped is old, or of no use.
func TestUsefulWays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		list := drawWays(rt)
		held := []delta.Root{root(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "held"))}
		base := root(rapid.SampledFrom([]string{"e", "0"}).Draw(rt, "base"))
		offer := edgesOf(drawWays(rt))
		most := rapid.IntRange(1, 4).Draw(rt, "most")
		kept := usefulWays(list, held, base, offer, most)
		if len(kept) > most {
			rt.Fatalf("%d kept, at most %d", len(kept), most)
		}
		near := reachable(held, slices.Concat(offer, edgesOf(list)))
		good := func(w wayBack) bool { return near[w.Edge.Base] && w.Edge.Target != base }
		at := 0
		for _, w := range kept {
			if !good(w) {
				rt.Fatalf("%v is of no use", w)
			}
			i := slices.Index(list[at:], w)
			if i < 0 {
				rt.Fatalf("%v is not one of them, or out of order", w)
			}
			at += i + 1
		}
		for _, w := range list {
			known := slices.ContainsFunc(kept, func(k wayBack) bool { return k.Edge == w.Edge })
			if good(w) && !known && len(kept) < most {
				rt.Fatalf("%v was dropped though there is room", w)
			}
		}
	})
}
