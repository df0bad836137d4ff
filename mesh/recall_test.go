package mesh

import (
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"pgregory.net/rapid"
)

func TestRecallSaysAThingOnceInAWhile(t *testing.T) {
	r := newRecall(2)
	for _, s := range []struct {
		minute int
		peer   peer.ID
		news   bool
		recent int
	}{
		{0, "a", true, 1},
		{1, "a", false, 1},
		{2, "b", true, 2},
		{3, "c", false, 2}, // no room
		{9, "a", false, 2},
		{10, "a", true, 2},
		{13, "c", true, 2}, // b is forgotten
		{30, "d", true, 1},
	} {
		now := time.Unix(0, 0).Add(time.Duration(s.minute) * time.Minute)
		if got := r.news(topic{peer: s.peer}, "text", now); got != s.news {
			t.Errorf("minute %d: news of %s: %v", s.minute, s.peer, got)
		}
		if got := len(r.recent(now)); got != s.recent {
			t.Errorf("minute %d: %d recent notes, want %d", s.minute, got, s.recent)
		}
	}
}

func TestRecallStaysWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, now := newRecall(4), time.Unix(0, 0)
		said := make(map[topic]time.Time)
		for range rapid.IntRange(0, 100).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "seconds")) * time.Second)
			about := topic{peer.ID(rapid.StringOfN(rapid.RuneFrom([]rune("abcdefgh")), 1, 1, 1).Draw(t, "peer")), "x"}
			if r.news(about, strings.Repeat("é", rapid.IntRange(0, 300).Draw(t, "length")), now) {
				if before, ok := said[about]; ok && now.Sub(before) < recallFor {
					t.Fatalf("said again after %v", now.Sub(before))
				}
				said[about] = now
			}
			if len(r.notes) > 4 {
				t.Fatalf("%d notes", len(r.notes))
			}
			for _, p := range r.recent(now) {
				if len(p.Text) > maxNote {
					t.Fatalf("a text of %d bytes", len(p.Text))
				}
			}
		}
	})
}
