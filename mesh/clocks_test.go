package mesh

import (
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"pgregory.net/rapid"
)

func TestSkewIsWhatMostPeersSay(t *testing.T) {
	const m = time.Minute
	for _, c := range []struct {
		offsets []time.Duration
		want    time.Duration
		problem string
	}{
		{nil, 0, ""},
		{[]time.Duration{0}, 0, ""},
		{[]time.Duration{2 * m}, 2 * m, ""},
		{[]time.Duration{3 * m}, 3 * m, "3m0s behind"},
		{[]time.Duration{-3 * m}, -3 * m, "3m0s ahead of"},
		{[]time.Duration{0, 60 * m}, 0, ""},
		{[]time.Duration{60 * m, 61 * m}, 60 * m, "1h0m0s behind"},
		{[]time.Duration{-60 * m, 60 * m}, -60 * m, "1h0m0s ahead of"},
		{[]time.Duration{60 * m, 0, 1}, 1, ""},
		{[]time.Duration{60 * m, 0, 62 * m}, 60 * m, "most of 3 peers"},
		{[]time.Duration{-1 << 62, 0, 1 << 62, 1, 2}, 1, ""},
	} {
		clocks := newClocks()
		for i, d := range c.offsets {
			clocks.offsets[peer.ID(rune('a'+i))] = d
		}
		got, n := clocks.skew()
		if got != c.want || n != len(c.offsets) {
			t.Errorf("%v: %s of %d", c.offsets, got, n)
		}
		all := clocks.problems()
		if (len(all) > 0) != (c.problem != "") || len(all) > 0 && !strings.Contains(all[0].Text, c.problem) {
			t.Errorf("%v: problems %v", c.offsets, all)
		}
	}
}

// Whatever a minority says, the skew is between what two of the others say.
func TestLiarsDoNotMoveTheSkew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		honest := rapid.SliceOfN(rapid.Int64Range(-1000, 1000), 1, 9).Draw(t, "honest")
		liars := rapid.SliceOfN(rapid.Uint64Range(1, maxClock), 0, len(honest)-1).Draw(t, "liars")
		c, here := newClocks(), time.UnixMilli(1_700_000_000_000)
		for i, ms := range honest {
			c.note(peer.ID(rune('a'+i)), uint64(here.UnixMilli()+ms), here, here)
		}
		for i, clock := range liars {
			c.note(peer.ID(rune('A'+i)), clock, here, here)
		}
		if got, n := c.skew(); got.Abs() > time.Second || n != len(honest)+len(liars) {
			t.Fatalf("%s of %d", got, n)
		}
	})
}

// Both the one whose clock is wrong and the trainer that is refused for it say so.
func TestWrongClocksAreNamedAtBothEnds(t *testing.T) {
	for _, skew := range []time.Duration{90 * time.Minute, -90 * time.Minute} { // of the trainer's clock
		virtually(t, func(t *testing.T, n *virtualNet) {
			time.Sleep(2 * time.Hour) // or epochs would begin before this test does
			tm, said, heard := newTeam(4), new(logLines), new(logLines)
			n.role, n.skew, n.log = RoleTrainer, skew, said.logger()
			trainer := n.join(t, tm, 0, nil)
			v := Version{uint64(time.Now().Add(skew).UnixMilli()), 1}
			publish(t, trainer, tm, v) // before it knows anybody
			n.role, n.skew, n.log = "", 0, heard.logger()
			var workers []*node
			for i := 1; i < 4; i++ {
				workers = append(workers, n.join(t, tm, i, nil, trainer.info()))
			}
			time.Sleep(15 * time.Second)
			hasProblem(t, trainer, "", "this host's clock is 1h30m0s")
			said.want(t, 1, "this host's clock is 1h30m0s")
			late := skew > 0
			for _, w := range workers {
				if w.holds(v, 1) == late {
					t.Errorf("skew %s: a worker took the head: %v", skew, !late)
				}
				if late {
					hasProblem(t, w, idOf(tm.publisher), "ahead of the clock")
					hasProblem(t, trainer, w.id(), "refuses version "+v.String())
				} else if all := w.Problems(); len(all) > 0 {
					t.Errorf("a worker whose clock is right has problems: %v", all)
				}
			}
			said.want(t, map[bool]int{true: 3}[late], "a peer refuses what is published")
			want := time.Now() // the workers' where the trainer's is ahead
			if !late {
				want = want.Add(skew)
			}
			if got := trainer.run.Clock(); got.Sub(want).Abs() > time.Second {
				t.Errorf("skew %s: epochs would be opened at %s, want %s", skew, got, want)
			}
		})
	}
}

// Members whose clocks are decades behind, or who say so, keep no trainer from being heard by the others.
func TestLiarsAboutTheTimeSilenceNoTrainer(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(5)
		n.role = RoleTrainer
		trainer := n.join(t, tm, 0, nil)
		n.role = ""
		worker := n.join(t, tm, 1, nil, trainer.info())
		n.skew = -20 * 365 * 24 * time.Hour
		for i := 2; i < 5; i++ {
			n.join(t, tm, i, nil, trainer.info())
		}
		time.Sleep(10 * time.Second)
		epoch := uint64(trainer.run.Clock().UnixMilli())
		if time.Since(ofEpoch(epoch)) < 24*time.Hour {
			t.Fatal("the liars are not believed: nothing is tested")
		}
		for i := range uint64(2) { // what was heard counts for more than any clock
			v := Version{epoch + i<<39, 1}
			if err := trainer.Publish(t.Context(), testHead(v), testCatalogue(v.Epoch, 1, 1), tm.publisher); err != nil {
				t.Fatal(err)
			}
			eventually(t, 10*time.Second, "the worker takes it", func() bool { return worker.holds(v, 1) })
		}
	})
}

func TestClocksOfPeersThatAreGoneAreForgotten(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(2)
		a := n.join(t, tm, 0, nil)
		n.skew = time.Hour
		b := n.join(t, tm, 1, nil, a.info())
		time.Sleep(5 * time.Second)
		if ahead, n := a.heads.clocks.skew(); n != 1 || (ahead-time.Hour).Abs() > time.Second {
			t.Errorf("%s of %d", ahead, n)
		}
		b.stop()
		b.host.Close()
		eventually(t, 10*time.Second, "it is forgotten", func() bool { _, n := a.heads.clocks.skew(); return n == 0 })
	})
}
