package node

import (
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
)

func TestAvoidance(t *testing.T) {
	start := time.UnixMilli(1_700_000_000_000)
	e, other := edge("a", "b", 1), edge("a", "c", 1)
	at := func(d time.Duration) time.Time { return start.Add(d) }
	var a avoidance
	if len(a.now(start)) != 0 {
		t.Fatal("avoids something at first")
	}
	a.blame(start, e)
	if got := a.now(at(firstAvoid - 1)); !got[e] || got[other] {
		t.Errorf("avoids %v", got)
	}
	if a.now(at(firstAvoid))[e] {
		t.Error("still avoided after its pause")
	}
	a.news(at(time.Second))
	if a.now(at(time.Second))[e] {
		t.Error("still avoided after news")
	}
	a.blame(at(time.Minute), e)
	for range 10 { // news that come often
		a.news(at(time.Minute))
	}
	if !a.now(at(time.Minute + firstAvoid - 1))[e] {
		t.Error("news bring it back at once though it failed again")
	}
	if a.now(at(time.Minute + firstAvoid))[e] {
		t.Error("news do not bring it back")
	}
	for range 100 {
		a.blame(at(time.Hour), e)
	}
	if set := a.now(at(time.Hour + longAvoid - 1)); !set[e] || a.now(at(time.Hour + longAvoid))[e] {
		t.Error("the longest pause is another")
	}
	a.forget([]mesh.Edge{other})
	if len(a.edges) != 0 {
		t.Error("remembers what is not on offer")
	}
}

func TestStall(t *testing.T) {
	start := time.UnixMilli(1_700_000_000_000)
	var s stall
	for i, c := range []struct {
		after   time.Duration
		moves   int
		lacking bool
		want    time.Duration
	}{
		{0, 0, true, 0},
		{5 * time.Second, 0, true, 5 * time.Second},
		{9 * time.Second, 1, true, 0}, // something arrived
		{12 * time.Second, 1, true, 3 * time.Second},
		{13 * time.Second, 1, false, 0}, // somebody has it
		{40 * time.Second, 1, false, 0}, // and is slow
		{41 * time.Second, 1, true, time.Second},
	} {
		if got := s.look(start.Add(c.after), c.moves, c.lacking); got != c.want {
			t.Errorf("look %d: %s, want %s", i, got, c.want)
		}
	}
}
