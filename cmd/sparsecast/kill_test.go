package main

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// reaper ends nodes by SIGKILL at moments that nobody chose, and starts them again.
type reaper struct {
	random *rand.Rand
	kills  int
	hit    map[string]int // kills by what the node was doing
}

func newReaper(random *rand.Rand) *reaper { return &reaper{random: random, hit: map[string]int{}} }

// strike kills a node once, or again while it starts, and leaves it starting.
func (r *reaper) strike(h *host) {
	h.t.Helper()
	r.hit[r.moment(h)]++
	h.kill()
	r.kills++
	h.launch()
	for r.random.IntN(3) == 0 {
		time.Sleep(time.Duration(r.random.IntN(150)) * time.Millisecond)
		r.hit["starting"]++
		h.kill()
		r.kills++
		h.launch()
	}
}

// moment waits for a moment to die and says what the node was doing then, as far as can be told from outside. Half of
// them lie in the midst of writing a state, others after any while.
func (r *reaper) moment(h *host) string {
	partial := filepath.Join(h.data, "slots", "*", "*.partial")
	if r.random.IntN(2) == 0 {
		for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if found, _ := filepath.Glob(partial); found != nil {
				return "writing a state"
			}
		}
	}
	time.Sleep(time.Duration(r.random.IntN(120)) * time.Millisecond)
	return "anything"
}

// chaosFleet is a trainer, a relay and three rollouts, of which one knows the relay alone.
func chaosFleet(t *testing.T, base string) (f *fleet, relay *host) {
	t.Helper()
	f = newFleet(t, base, 2)
	relay = f.add("relay", mesh.RoleRelay, f.trainer)
	f.add("rollout-3", mesh.RoleRollout, relay)
	for _, h := range f.hosts {
		if h != relay {
			h.bootstrap = append(h.bootstrap, relay) // so that they meet again, whoever died
		}
	}
	return f, relay
}

// TestManyKills kills every node of a run again and again while it goes on, without rest, often in the midst of what
// it does.
func TestManyKills(t *testing.T) {
	t.Parallel()
	kills := 110
	if testing.Short() {
		kills = 15
	}
	seed := seedOf(t)
	s := newSeries(t, rand.New(rand.NewPCG(seed, 1)))
	f, relay := chaosFleet(t, s.base())
	f.trainer.keep = 4096 // whoever is killed too often to keep up comes back by deltas all the same
	f.start()

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	p := &publisher{trainer: f.trainer}
	last := make(chan api.VersionInfo, 1)
	go func() { last <- publishOn(ctx, t, s, p) }() // ends with ctx, and is waited for below

	random := rand.New(rand.NewPCG(seed, 2))
	r := newReaper(random)
	seen := map[*host]int{}
	for r.kills < kills && !t.Failed() {
		for _, i := range random.Perm(len(f.hosts))[:1+random.IntN(3)] {
			r.strike(f.hosts[i])
		}
		for _, h := range f.rollouts() {
			s.look(h, seen)
		}
		if random.IntN(3) == 0 { // without it, hardly any would ever come to do something
			for _, h := range f.hosts {
				h.answers()
			}
		}
	}
	stop()
	v := <-last
	if t.Failed() {
		t.FailNow()
	}
	for _, h := range append(f.rollouts(), relay) {
		h.await("serve the newest version", func(s api.Status) bool { return s.Served != nil && s.Served.Root == v.Root })
	}
	for _, h := range f.rollouts() {
		s.look(h, seen)
		if seen[h] != len(s.known)-1 {
			t.Errorf("%s serves step %d at the end, want %d", h.name, seen[h], len(s.known)-1)
		}
	}
	noLitter(t, f)
	t.Logf("%d kills %v, %d versions, %d publishes tried again", r.kills, r.hit, len(s.known)-1, p.retries)
}

// publishOn publishes step after step until ctx ends, the last of them for certain.
func publishOn(ctx context.Context, t *testing.T, s *series, p *publisher) (last api.VersionInfo) {
	for ctx.Err() == nil {
		number, path := s.next()
		v, err := p.publish(t.Context(), number, path)
		if err != nil {
			t.Error(err)
			return last
		}
		last = v
		os.Remove(path)
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return last
}

// seedOf prints the seed of a test, so that the schedule of a failure is known.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return seed
}

// noLitter wants nothing left over from writes that never ended. Nodes must run, and be done with what they do but for
// small notes.
func noLitter(t *testing.T, f *fleet) {
	t.Helper()
	for _, h := range f.hosts {
		var found []string
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if found = litter(h); len(found) == 0 {
				break
			}
		}
		if len(found) > 0 {
			t.Errorf("%s left over: %v", h.name, found)
		}
	}
}

func litter(h *host) (found []string) {
	for _, pattern := range []string{".tmp-*", "*.partial"} {
		for _, depth := range []string{"", "*", "*/*", "*/*/*"} {
			names, _ := filepath.Glob(filepath.Join(h.data, depth, pattern)) // the patterns are good ones
			found = append(found, names...)
		}
	}
	return found
}
