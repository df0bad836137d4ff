package mesh

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta"
)

func publisherOf(tm *team) []peer.ID { return []peer.ID{idOf(tm.publisher)} }

func TestRunConfigNamesWhatIsWrong(t *testing.T) {
	for word, spoil := range map[string]func(*RunConfig){
		"run name":   func(c *RunConfig) { c.Name = "" },
		"printable":  func(c *RunConfig) { c.Name = "a\x00b" },
		"publishers": func(c *RunConfig) { c.Publishers = nil },
		"negative":   func(c *RunConfig) { c.MaxAhead = -1 },
	} {
		c := RunConfig{Name: testRun, Publishers: []peer.ID{"publisher"}}
		spoil(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("want an error with %q, got %v", word, err)
		}
	}
	c := RunConfig{Name: testRun, Publishers: []peer.ID{"publisher"}}
	if err := c.Validate(); err != nil || c.MaxAhead != time.Hour {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestJoiningIsBoundedAndComesFirst(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(1)
		h, _ := n.host(t, tm.keys[0], tm.members, new(Stats))
		m, err := New(h, Config{Role: RoleRelay, Members: tm.members}, NewMemoryStore(), new(Stats), zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range manyRuns(maxRuns) {
			if _, err := m.Join(RunConfig{Name: run, Publishers: publisherOf(tm)}, newDiskStub()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := m.Join(RunConfig{Name: "one more", Publishers: publisherOf(tm)}, newDiskStub()); err == nil || !strings.Contains(err.Error(), "at most") {
			t.Errorf("one run too many: %v", err)
		}
		nd := n.join(t, newTeam(1), 0, nil)
		time.Sleep(time.Second)
		if _, err := nd.Join(RunConfig{Name: testRun, Publishers: publisherOf(tm)}, newDiskStub()); err == nil || !strings.Contains(err.Error(), "runs already") {
			t.Errorf("a run too late: %v", err)
		}
		m, err = New(h, Config{Role: RoleRelay, Members: tm.members}, NewMemoryStore(), new(Stats), zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []bool{true, false} {
			if _, err := m.Join(RunConfig{Name: testRun, Publishers: publisherOf(tm)}, newDiskStub()); (err == nil) != want {
				t.Errorf("joined %d times: %v", i+1, err)
			}
		}
	})
}

// A relay carries two runs for nodes that are in one each. Each hears its own, and no more; blocks go both ways.
func TestRunsOfOneNodeDoNotMix(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(5)
		n.runs = []string{"b", "a"}
		relay := n.join(t, tm, 0, nil)
		inRun := make(map[string][]*node)
		for i, run := range []string{"a", "a", "b", "b"} {
			n.runs = []string{run}
			inRun[run] = append(inRun[run], n.join(t, tm, i+1, nil, relay.info()))
		}
		time.Sleep(5 * time.Second)
		for i, run := range []string{"a", "b"} {
			h, c := testHead(now(uint64(i+1))), testCatalogue(now(0).Epoch, 1, i+1)
			h.Run, c.Run = run, run
			if err := inRun[run][0].Publish(t.Context(), h, c, tm.publisher); err != nil {
				t.Fatal(err)
			}
		}
		for i, run := range []string{"a", "b"} {
			v := now(uint64(i + 1))
			eventually(t, time.Second, "the other of run "+run+" hears", func() bool { return inRun[run][1].holds(v, i+1) })
			r := relay.runs[1-i]
			if h, _, _, _ := r.Latest(); r.Name() != run || h.Run != run || h.Version != v {
				t.Errorf("the relay holds %s of run %q in %q", h.Version, h.Run, r.Name())
			}
		}
		time.Sleep(10 * time.Second)
		for run, nodes := range inRun {
			for _, nd := range nodes {
				if h, _, _, _ := nd.Latest(); h.Run != run || nd.stats.HeadsForged.Load()+nd.stats.MessagesMalformed.Load() > 0 {
					t.Errorf("a node of run %q holds a head of %q and refused %d", run, h.Run, nd.stats.HeadsForged.Load())
				}
				for _, p := range nd.Problems() {
					other := slices.ContainsFunc(inRun[map[string]string{"a": "b", "b": "a"}[run]], func(x *node) bool { return x.id() == p.Peer })
					if !other || !strings.Contains(p.Text, "belongs to run") {
						t.Errorf("a node of run %q has a problem: %v", run, p)
					}
				}
			}
		}
		if all := relay.Problems(); len(all) > 0 {
			t.Errorf("the relay has problems: %v", all)
		}
		for _, info := range relay.Peers() {
			if len(info.Runs) != 1 {
				t.Errorf("peer %s is in %v", info.ID, info.Runs)
			}
		}
		block := []byte("a block of both")
		id := delta.Sum(block)
		if err := inRun["a"][0].exchange.store.Put(id, block); err != nil {
			t.Fatal(err)
		}
		for _, nd := range []*node{relay, inRun["b"][0]} { // the second is served by the relay, which shares its run
			if got, err := nd.run.Block(t.Context(), id, 100); err != nil || string(got) != string(block) {
				t.Errorf("got %q, %v", got, err)
			}
		}
	})
}

func TestAProblemOfARunNamesIt(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(1)
		n.runs = []string{"a", "b"}
		nd := n.join(t, tm, 0, nil)
		nd.runs[1].keeper.refused.news(topic{peer: nd.id()}, "forged", time.Now())
		want := Problem{Peer: nd.id(), Text: "forged", Run: "b"}
		if !slices.Contains(nd.Problems(), want) || !slices.Contains(nd.runs[1].Problems(), want) || len(nd.runs[0].Problems()) > 0 {
			t.Errorf("problems %v, of a %v, of b %v", nd.Problems(), nd.runs[0].Problems(), nd.runs[1].Problems())
		}
	})
}

// A node that waits for the first answer is not kept waiting by one that knows nothing.
func TestAnAnswerWithoutAHeadIsAnAnswer(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(2)
		a := n.join(t, tm, 0, nil)
		select {
		case <-a.run.Answered():
			t.Error("answered by nobody")
		case <-time.After(time.Minute):
		}
		b := n.join(t, tm, 1, nil, a.info())
		for _, nd := range []*node{a, b} {
			select {
			case <-nd.run.Answered():
			case <-time.After(2 * time.Second):
				t.Error("no answer")
			}
		}
	})
}
