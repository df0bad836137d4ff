package mesh

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// The files in testdata/swarm tell stories of swarms, one command a line:
//
//	chunks N                  the payload, before anything else
//	trainer|rollout|relay NAME CLUSTER [MS]
//	                          a node; its uplink takes MS for one chunk, 10 unless said
//	holds NAME                it holds all chunks
//	fetch NAME...             they begin to fetch, now
//	wait MS                   time passes
//	die NAME                  it is gone, and everybody notices
//	freeze NAME               it does nothing any more; everybody notices after 7 s
//	done NAME...              they hold all chunks by now
//	sent NAME MIN MAX         so many chunks it has sent
//
// Only the pickers are real: news of a chunk travels 50 ms, requests and chunks no time but the uplink's.
type story struct {
	chunks int
	now    time.Time
	nodes  []*actor
	later  []postponed
}

type actor struct {
	id      peer.ID
	role    Role
	cluster string
	pace    time.Duration
	free    time.Time // when the uplink is
	p       *picker   // nil while it does not fetch
	held    bitmap
	queue   []ask // requests that wait here, to is who asked
	served  map[peer.ID]time.Time
	sent    int
	frozen  bool
}

type postponed struct {
	at time.Time
	do func()
}

const storyStep = 5 * time.Millisecond

func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/swarm/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := &story{now: time.UnixMilli(1_700_000_000_000)}
			for n, line := range strings.Split(string(text), "\n") {
				words := strings.Fields(line)
				if len(words) == 0 || words[0] == "#" {
					continue
				}
				if err := s.play(words[0], words[1:]); err != nil {
					t.Fatalf("%s:%d: %s: %v", file, n+1, line, err)
				}
			}
		})
	}
}

func (s *story) play(verb string, words []string) error {
	switch verb {
	case "chunks":
		return scan(words[0], &s.chunks)
	case "trainer", "rollout", "relay":
		a := &actor{id: peer.ID(words[0]), role: Role(verb), cluster: words[1], pace: 10 * time.Millisecond, held: newBitmap(s.chunks), served: make(map[peer.ID]time.Time)}
		s.nodes = append(s.nodes, a)
		if len(words) > 2 {
			ms := 0
			defer func() { a.pace = time.Duration(ms) * time.Millisecond }()
			return scan(words[2], &ms)
		}
		return nil
	case "wait":
		ms := 0
		err := scan(words[0], &ms)
		for end := s.now.Add(time.Duration(ms) * time.Millisecond); s.now.Before(end); s.now = s.now.Add(storyStep) {
			s.step()
		}
		return err
	case "sent":
		low, high := 0, 0
		if err := scan(words[1], &low); err != nil {
			return err
		}
		if err := scan(words[2], &high); err != nil {
			return err
		}
		if got := s.node(words[0]).sent; got < low || got > high {
			return fmt.Errorf("%d chunks", got)
		}
		return nil
	}
	for _, name := range words {
		if err := s.playOne(verb, s.node(name)); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) playOne(verb string, a *actor) error {
	switch verb {
	case "holds":
		for i := range s.chunks {
			a.held.set(i)
		}
	case "fetch":
		s.fetch(a)
	case "die":
		a.frozen = true
		s.leave(a)
	case "freeze":
		a.frozen = true
		s.after(7*time.Second, func() { s.leave(a) })
	case "done":
		if got := a.held.count(); got != s.chunks {
			return fmt.Errorf("%s holds %d of %d chunks", a.id, got, s.chunks)
		}
	default:
		return fmt.Errorf("no such command")
	}
	return nil
}

func scan(word string, n *int) (err error) {
	*n, err = strconv.Atoi(word)
	return err
}

func (s *story) node(name string) *actor {
	for _, a := range s.nodes {
		if string(a.id) == name {
			return a
		}
	}
	panic("no node called " + name)
}

func (s *story) after(d time.Duration, do func()) {
	s.later = append(s.later, postponed{s.now.Add(d), do})
}

// fetch starts a's download: it hears what others hold and they hear its claim.
func (s *story) fetch(a *actor) {
	a.p = newPicker(testPicking, a.id, a.cluster, testChunks(s.chunks), s.now, uint64(len(a.id))+uint64(a.id[0]))
	for _, b := range s.nodes {
		if b == a || b.frozen {
			continue
		}
		a.p.join(s.now, b.id, b.role, b.cluster)
		s.after(10*time.Millisecond, func() { a.p.haves(s.now, b.id, b.held) })
		if b.p != nil {
			a.p.claim(s.now, b.id, !b.p.done())
			b.p.join(s.now, a.id, a.role, a.cluster)
			b.p.claim(s.now, a.id, true)
			b.p.haves(s.now, a.id, a.held)
		}
	}
}

func (s *story) leave(gone *actor) {
	for _, b := range s.nodes {
		if b.p != nil {
			b.p.leave(s.now, gone.id)
		}
	}
}

func (s *story) step() {
	due := s.later
	s.later = nil
	for _, d := range due {
		if d.at.After(s.now) {
			s.later = append(s.later, d)
		} else {
			d.do()
		}
	}
	for _, a := range s.nodes {
		if !a.frozen {
			s.serve(a)
			s.ask(a)
		}
	}
}

func (s *story) ask(a *actor) {
	if a.p == nil {
		return
	}
	for _, r := range a.p.next(s.now) {
		b, wish := s.node(string(r.to)), ask{a.id, r.chunk}
		if !b.frozen && !slices.Contains(b.queue, wish) {
			b.queue = append(b.queue, wish)
		}
	}
}

// serve delivers what a's uplink has had time for.
func (s *story) serve(a *actor) {
	for len(a.queue) > 0 && !a.free.After(s.now) {
		// Whoever was served longest ago is next: every asker has streams of its own.
		next := 0
		for k, r := range a.queue {
			if a.served[r.to].Before(a.served[a.queue[next].to]) {
				next = k
			}
		}
		r := a.queue[next]
		a.queue = slices.Delete(a.queue, next, next+1)
		a.served[r.to] = s.now
		a.free = later(a.free, s.now).Add(a.pace)
		a.sent++
		if b := s.node(string(r.to)); !b.frozen {
			s.after(a.pace, func() { s.deliver(a, b, r.chunk) })
		}
	}
}

func (s *story) deliver(from, to *actor, chunk int) {
	to.p.arrived(s.now, from.id, chunk)
	to.p.hold(chunk)
	to.held.set(chunk)
	s.after(50*time.Millisecond, func() {
		for _, b := range s.nodes {
			if b.p != nil && b != to && !to.frozen {
				b.p.gained(s.now, to.id, chunk)
			}
		}
	})
}
