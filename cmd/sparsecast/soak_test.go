package main

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/sparsecast/sparsecast/node/api"
)

const (
	soakBytes = 384 << 10 // coded bytes on offer: a tenth of what a long soak would come to
	soakPace  = 10        // versions after which everybody must have caught up
)

// TestSoak publishes 200 versions while nodes of every role are killed. What hosts serve is compared again and again,
// and what they take of disk, memory and open files must not grow with the number of versions.
func TestSoak(t *testing.T) {
	t.Parallel()
	versions := 200
	if testing.Short() {
		versions = 40
	}
	seed := seedOf(t)
	random := rand.New(rand.NewPCG(seed, 2))
	s := newSeries(t, rand.New(rand.NewPCG(seed, 1)))
	f, relay := chaosFleet(t, s.base())
	f.trainer.keep, f.trainer.keepBytes = 4096, soakBytes // by bytes alone
	f.start()

	veteran := f.rollouts()[2] // never killed; trainer and relay are not in the second half
	victims := slices.DeleteFunc(slices.Clone(f.hosts), func(h *host) bool { return h == veteran })

	p := &publisher{trainer: f.trainer}
	r := newReaper(random)
	w := newWatch(t, s)
	seen := map[*host]int{}
	for range versions {
		number, path := s.next()
		if number == versions/2 {
			victims = f.rollouts()[:2]
		}
		if random.IntN(3) == 0 {
			r.strike(victims[random.IntN(len(victims))])
		}
		v, err := p.publish(t.Context(), number, path)
		if err != nil {
			t.Fatal(err)
		}
		os.Remove(path)
		w.add(v)
		for _, h := range f.hosts {
			w.disk(h, soakBytes)
		}
		if number%soakPace != 0 { // nobody falls behind by more than what is on offer
			continue
		}
		for _, h := range append(f.rollouts(), relay) {
			h.await("serve what all others do", func(s api.Status) bool { return s.Served != nil && s.Served.Root == v.Root })
		}
		for _, h := range f.rollouts() {
			if s.look(h, seen); seen[h] != number {
				t.Errorf("%s serves step %d, want %d", h.name, seen[h], number)
			}
		}
		for _, h := range f.hosts {
			w.process(h)
		}
		w.offer(f.trainer, soakBytes)
	}
	for _, h := range f.hosts {
		h.await("forget what is no longer on offer", func(api.Status) bool { return w.tidy(h, soakBytes) })
	}
	noLitter(t, f)
	w.verdict()
	t.Logf("%d kills %v, %d publishes tried again", r.kills, r.hit, p.retries)
}
