package mesh

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/sparsecast/sparsecast/delta"
	"pgregory.net/rapid"
)

var testPicking = pickConfig{
	window: 4, maxWindow: 16, takeover: time.Second, stall: 4 * time.Second, slow: 30 * time.Second,
	presume: time.Second, endgame: 8,
}

func testChunks(n int) []cid.Cid {
	chunks := make([]cid.Cid, n)
	for i := range chunks {
		chunks[i] = delta.Sum(fmt.Append(nil, "chunk ", i))
	}
	return chunks
}

// pickerModel drives a picker at random and knows what it was promised.
type pickerModel struct {
	p    *picker
	now  time.Time
	n    int
	open []ask // requests without an answer; also such as the picker has given up
}

func newPickerModel(t *rapid.T) *pickerModel {
	n := rapid.IntRange(1, 40).Draw(t, "chunks")
	m := &pickerModel{now: time.UnixMilli(1_700_000_000_000), n: n}
	m.p = newPicker(testPicking, "self", "a", testChunks(n), m.now, rapid.Uint64().Draw(t, "seed"))
	return m
}

func (m *pickerModel) peer(t *rapid.T) peer.ID {
	return peer.ID(rapid.SampledFrom([]string{"p", "q", "r", "s", "u"}).Draw(t, "peer"))
}

func (m *pickerModel) chunk(t *rapid.T) int { return rapid.IntRange(0, m.n-1).Draw(t, "chunk") }

// next has the picker decide and checks what it decided.
func (m *pickerModel) next(t *rapid.T) []ask {
	asks := m.p.next(m.now)
	for _, a := range asks {
		s := m.p.find(a.to)
		switch {
		case m.p.at[a.chunk] < 0:
			t.Fatalf("asked for chunk %d, which is here", a.chunk)
		case s == nil || !s.has.has(a.chunk):
			t.Fatalf("asked %s, which does not hold chunk %d", a.to, a.chunk)
		case m.now.Before(s.down) || m.now.Before(s.paused):
			t.Fatalf("asked %s, which is to be left alone", a.to)
		}
		m.open = append(m.open, a)
	}
	return asks
}

// check looks for leaks.
func (m *pickerModel) check(t *rapid.T) {
	flights := 0
	for i, copies := range m.p.asked {
		if len(copies) > maxCopies || len(copies) == 2 && copies[0].from == copies[1].from {
			t.Fatalf("chunk %d is under way as %v", i, copies)
		}
		for _, f := range copies {
			if s := m.p.find(f.from); s == nil || s.out[i] != f.since {
				t.Fatalf("chunk %d is under way from %s, which does not know", i, f.from)
			}
		}
		flights += len(copies)
	}
	slots := 0
	for _, s := range m.p.peers {
		if s.window < 1 || s.window > testPicking.maxWindow || len(s.out) > testPicking.maxWindow {
			t.Fatalf("%s has %d requests in a window of %d", s.id, len(s.out), s.window)
		}
		slots += len(s.out)
	}
	if flights != slots {
		t.Fatalf("%d chunks under way in %d slots", flights, slots)
	}
}

// answer takes an open request out.
func (m *pickerModel) answer(t *rapid.T) (ask, bool) {
	if len(m.open) == 0 {
		return ask{}, false
	}
	k := rapid.IntRange(0, len(m.open)-1).Draw(t, "request")
	a := m.open[k]
	m.open = slices.Delete(m.open, k, k+1)
	return a, true
}

func (m *pickerModel) actions() map[string]func(*rapid.T) {
	role := rapid.SampledFrom([]Role{RoleTrainer, RoleRollout, RoleRelay})
	cluster := rapid.SampledFrom([]string{"a", "b"})
	return map[string]func(*rapid.T){
		"join":   func(t *rapid.T) { m.p.join(m.now, m.peer(t), role.Draw(t, "role"), cluster.Draw(t, "cluster")) },
		"leave":  func(t *rapid.T) { m.leave(m.peer(t)) },
		"claim":  func(t *rapid.T) { m.p.claim(m.now, m.peer(t), rapid.Bool().Draw(t, "fetching")) },
		"gained": func(t *rapid.T) { m.p.gained(m.now, m.peer(t), m.chunk(t)) },
		"heard":  func(t *rapid.T) { m.p.heardFrom(m.now, m.peer(t)) },
		"hold":   func(t *rapid.T) { m.p.hold(m.chunk(t)) },
		"next":   func(t *rapid.T) { m.next(t) },
		"have": func(t *rapid.T) {
			all := newBitmap(m.n)
			for _, i := range rapid.SliceOf(rapid.IntRange(0, m.n-1)).Draw(t, "held") {
				all.set(i)
			}
			m.p.haves(m.now, m.peer(t), all)
		},
		"wait": func(t *rapid.T) {
			m.now = m.now.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond)
		},
		"arrive": func(t *rapid.T) {
			if a, ok := m.answer(t); ok {
				m.p.arrived(m.now, a.to, a.chunk)
				m.p.hold(a.chunk)
			}
		},
		"fail": func(t *rapid.T) {
			if a, ok := m.answer(t); ok {
				m.p.failed(m.now, a.to, a.chunk, reason(rapid.IntRange(0, int(reasonLost)).Draw(t, "why")))
			}
		},
		"": m.check,
	}
}

func (m *pickerModel) leave(id peer.ID) {
	m.p.leave(m.now, id)
	m.open = slices.DeleteFunc(m.open, func(a ask) bool { return a.to == id })
}

// TestPickerKeepsItsPromises runs the picker through anything that may happen. Then one honest holder stays, while
// the others say nothing any more, and everything must arrive.
func TestPickerKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newPickerModel(t)
		t.Repeat(m.actions())
		honest := peer.ID("t")
		m.p.join(m.now, honest, RoleTrainer, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "cluster"))
		all := newBitmap(m.n)
		for i := range m.n {
			all.set(i)
		}
		m.p.haves(m.now, honest, all)
		for deadline := m.now.Add(10 * time.Minute); !m.p.done(); m.now = m.now.Add(fetchTick) {
			if m.now.After(deadline) {
				t.Fatalf("%d chunks are missing after ten minutes with a holder at hand", len(m.p.missing))
			}
			for _, a := range m.next(t) {
				if a.to == honest {
					m.p.arrived(m.now, a.to, a.chunk)
					m.p.hold(a.chunk)
				}
			}
			m.check(t)
		}
	})
}

func TestPickerAsksForTheRarestFirst(t *testing.T) {
	now := time.UnixMilli(0)
	p := newPicker(testPicking, "self", "a", testChunks(20), now, 1)
	everything := newBitmap(20)
	for i := range 20 {
		everything.set(i)
	}
	without := slices.Clone(everything)
	for _, rare := range []int{3, 8, 13, 17} {
		without.clear(rare)
	}
	for i, all := range []bitmap{everything, everything, without} {
		id := peer.ID(fmt.Sprint("p", i))
		p.join(now, id, RoleRollout, "a")
		p.haves(now, id, all)
	}
	var asked []int
	for _, a := range p.next(now)[:4] {
		asked = append(asked, a.chunk)
	}
	if slices.Sort(asked); !slices.Equal(asked, []int{3, 8, 13, 17}) {
		t.Errorf("asked for %v first, want the four that only two hold", asked)
	}
}

func TestPickerSparesTrainerAndFarPeers(t *testing.T) {
	now := time.UnixMilli(0)
	p := newPicker(testPicking, "self", "a", testChunks(12), now, 1)
	for id, where := range map[peer.ID]string{"far": "b", "near": "a", "trainer": "a"} {
		role := RoleRollout
		if id == "trainer" {
			role = RoleTrainer
		}
		p.join(now, id, role, where)
		for i := range 12 {
			p.gained(now, id, i)
		}
	}
	for _, a := range p.next(now) {
		if a.to != "near" {
			t.Errorf("asked %s for chunk %d, which a near rollout holds", a.to, a.chunk)
		}
	}
}

func TestWindowGrowsAndShrinks(t *testing.T) {
	s := source{acquaintance: new(acquaintance), window: 4}
	for range 4 {
		s.delivered(time.Millisecond, time.Millisecond, 16)
	}
	if s.window != 5 {
		t.Errorf("window %d after four deliveries, want 5", s.window)
	}
	for range 1000 {
		s.delivered(time.Millisecond, time.Millisecond, 16)
	}
	if s.window != 16 {
		t.Errorf("window %d after many deliveries, want 16", s.window)
	}
	for range 10 {
		s.shrink()
	}
	if s.window != 1 {
		t.Errorf("window %d after many failures, want 1", s.window)
	}
}
