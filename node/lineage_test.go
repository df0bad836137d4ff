package node

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
	"pgregory.net/rapid"
)

const (
	me   peer.ID = "me"
	them peer.ID = "them"
)

// opened returns a lineage that opened epoch and has signed v, with weights if worked.
func opened(epoch uint64, v mesh.Version, worked bool) lineage {
	l := lineage{self: me, epoch: epoch}
	if v != (mesh.Version{}) {
		l.sign(v, worked)
	}
	return l
}

func TestLineageAnswersWhatItHears(t *testing.T) {
	v := func(epoch, number uint64) mesh.Version { return mesh.Version{Epoch: epoch, Number: number} }
	for _, c := range []struct {
		what   string
		l      lineage
		heard  mesh.Version
		signer peer.ID
		frozen bool
		want   duty
		passed bool
	}{
		{"nothing", opened(5, mesh.Version{}, false), mesh.Version{}, "", false, dutyNone, false},
		{"its own head", opened(5, v(5, 3), true), v(5, 3), me, false, dutyNone, false},
		{"an older number", opened(5, v(5, 3), true), v(5, 2), me, false, dutyNone, false},
		{"an older epoch of its key, as before a restart", opened(5, mesh.Version{}, false), v(4, 9), me, false, dutyNone, false},
		{"an older epoch of another", opened(5, v(5, 0), false), v(4, 9), them, false, dutyNone, false},
		{"a higher epoch before it signed anything", opened(5, mesh.Version{}, false), v(6, 1), me, false, dutyTakeOver, false},
		{"a higher epoch after the base", opened(5, v(5, 0), false), v(6, 1), me, false, dutyTakeOver, false},
		{"the same epoch, a higher number", opened(5, v(5, 0), false), v(5, 1), me, false, dutyTakeOver, false},
		{"a higher epoch after weights", opened(5, v(5, 1), true), v(6, 0), me, false, dutyStop, false},
		{"a twin in the same epoch", opened(5, v(5, 1), true), v(5, 2), me, false, dutyStop, false},
		{"a higher epoch of another", opened(5, v(5, 1), true), v(6, 0), them, false, dutyNone, true},
		{"a higher epoch of another at the start", opened(5, mesh.Version{}, false), v(6, 0), them, false, dutyNone, true},
		{"two states of one version", opened(5, v(5, 1), true), v(5, 1), me, true, dutyStop, false},
		{"an older epoch that is frozen", opened(5, mesh.Version{}, false), v(4, 1), me, true, dutyNone, false},
		{"a frozen epoch of another", opened(5, mesh.Version{}, false), v(5, 1), them, true, dutyNone, true},
		{"anything before the start", lineage{self: me}, v(9, 9), me, false, dutyNone, false},
	} {
		l := c.l
		if got := l.hear(c.heard, c.signer, c.frozen); got != c.want || (l.passed != nil) != c.passed {
			t.Errorf("%s: duty %d, want %d; passed %v", c.what, got, c.want, l.passed)
		}
		if (l.stopped != nil) != (c.want == dutyStop) {
			t.Errorf("%s: stopped: %v", c.what, l.stopped)
		}
	}
}

// Who takes over once has no second chance, and who has stopped says so once.
func TestLineageTakesOverOnce(t *testing.T) {
	l := opened(5, mesh.Version{Epoch: 5}, false)
	if l.hear(mesh.Version{Epoch: 7, Number: 3}, me, false) != dutyTakeOver || l.epoch != 8 {
		t.Fatalf("epoch %d", l.epoch)
	}
	l.sign(mesh.Version{Epoch: 8, Number: 3}, false)
	if got := l.hear(mesh.Version{Epoch: 9, Number: 3}, me, false); got != dutyStop {
		t.Fatalf("the second time: %d", got)
	}
	if got := l.hear(mesh.Version{Epoch: 10, Number: 3}, me, false); got != dutyNone {
		t.Errorf("said again: %d", got)
	}
	for _, fresh := range []bool{false, true} {
		var e *api.Error
		if err := l.admit(fresh); !errors.As(err, &e) || !strings.Contains(e.Hint, "own key") || !strings.Contains(e.Message, "version 3 of epoch 1970-01-01 00:00:00.009") {
			t.Errorf("publishing after that: %v", err)
		}
	}
}

func TestAnotherPublisherIsPassedInAFreshEpoch(t *testing.T) {
	l := opened(5, mesh.Version{Epoch: 5, Number: 1}, true)
	l.hear(mesh.Version{Epoch: 7, Number: 3}, them, false)
	var e *api.Error
	if err := l.admit(false); !errors.As(err, &e) || !strings.Contains(e.Hint, "--new-epoch") {
		t.Fatalf("behind another: %v", err)
	}
	if err := l.admit(true); err != nil {
		t.Fatal(err)
	}
	v := mesh.Version{Epoch: l.next(time.UnixMilli(6), mesh.Version{Epoch: 7, Number: 3}, true), Number: 1}
	if v.Epoch != 8 {
		t.Fatalf("epoch %d", v.Epoch)
	}
	l.sign(v, true)
	if err := l.admit(false); err != nil {
		t.Errorf("after taking over: %v", err)
	}
}

// Until an epoch is published, a clock that was put right counts.
func TestAnEpochFollowsTheClockUntilItIsSigned(t *testing.T) {
	l := opened(9000, mesh.Version{}, false)
	if got := l.next(time.UnixMilli(1000), mesh.Version{Epoch: 10}, false); got != 1000 {
		t.Errorf("epoch %d, want 1000", got)
	}
	l.sign(mesh.Version{Epoch: 9000, Number: 1}, true)
	for fresh, want := range map[bool]uint64{false: 9000, true: 9001} {
		if got := l.next(time.UnixMilli(1000), mesh.Version{Epoch: 9000, Number: 1}, fresh); got != want {
			t.Errorf("fresh %v: epoch %d, want %d", fresh, got, want)
		}
	}
	if got := l.next(time.UnixMilli(-5), mesh.Version{}, true); got != 9001 {
		t.Errorf("a clock before 1970: epoch %d", got)
	}
}

// Two trainers with one key, whatever they do and whenever they hear of each other: in the end at most one of them
// publishes, the newest head is that one's, and none ever signs a version that is not above all that it heard.
func TestTwoTrainersWithOneKeyBecomeOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trainers := [2]lineage{{self: me}, {self: me}}
		var newest mesh.Version // what all peers hold
		var by int
		sign := func(i int, v mesh.Version, work bool) {
			trainers[i].sign(v, work)
			if v.Compare(newest) <= 0 {
				return // stale everywhere
			}
			newest, by = v, i
		}
		hear := func(i int) {
			if trainers[i].hear(newest, me, false) == dutyTakeOver {
				sign(i, mesh.Version{Epoch: trainers[i].epoch, Number: newest.Number}, false)
			}
		}
		clock := int64(1000)
		for i := range trainers {
			knows := mesh.Version{}
			if rapid.Bool().Draw(t, "asks first") {
				knows = newest
			}
			trainers[i].epoch = trainers[i].next(time.UnixMilli(clock+rapid.Int64Range(-500, 500).Draw(t, "skew")), knows, true)
			if knows == (mesh.Version{}) {
				sign(i, mesh.Version{Epoch: trainers[i].epoch}, false)
			}
			clock += rapid.Int64Range(1, 400).Draw(t, "later")
		}
		publish := func(i int) {
			hear(i)
			if trainers[i].admit(false) != nil {
				return
			}
			v := mesh.Version{Epoch: trainers[i].next(time.UnixMilli(clock), newest, false), Number: newest.Number + 1}
			if v.Compare(newest) <= 0 {
				t.Fatalf("%s is signed after %s", v, newest)
			}
			sign(i, v, true)
		}
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			if i := rapid.IntRange(0, 1).Draw(t, "trainer"); rapid.Bool().Draw(t, "publishes") {
				publish(i)
			} else {
				hear(i)
			}
		}
		for range 2 {
			publish(0)
			publish(1)
		}
		hear(0)
		hear(1)
		if a, b := trainers[0].stopped, trainers[1].stopped; (a == nil) == (b == nil) {
			t.Fatalf("stopped: %v and %v", a, b)
		}
		if trainers[by].stopped != nil {
			t.Fatal("the one that is followed has stopped")
		}
	})
}
