package sim

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/files/faults"
)

// World is a run of a plan: machines, their disks and nodes, and the oracle that watches them. One goroutine, that of
// Live, does everything that the plan says; the nodes' own goroutines only ever wake it.
type World struct {
	plan   *Plan
	net    *Network
	trace  *Trace
	oracle *oracle
	boxes  []*box
	base   *weights           // which machines start from
	offers map[mesh.Edge]bool // of the trainers, since the faults have ended; guarded by mu
	ctx    context.Context
	start  time.Time
	woken  chan struct{} // holds a token when something happened by itself
	agenda eventQueue
	seq    uint64
	over   bool // nobody is started any more

	programs sync.WaitGroup
	mu       sync.Mutex
	failure  *Failure // the first
}

// Failure is an invariant that did not hold.
type Failure struct {
	At        time.Duration
	Invariant string
	What      string
}

func (f *Failure) Error() string {
	return fmt.Sprintf("at %.3f s: %s\n  %s", f.At.Seconds(), f.Invariant, f.What)
}

// sampleEvery is how often everything is looked at beside all that happens.
const sampleEvery = 5 * time.Second

// Live lives through a plan inside a synctest bubble and returns what went wrong, nil for nothing.
func Live(ctx context.Context, p *Plan, trace *Trace) (w *World, failure *Failure) {
	w = newWorld(ctx, p, trace)
	for _, s := range p.Steps {
		w.after(s.At, func() {
			w.note("%s", s.Do)
			s.Do.do(w)
		})
	}
	for _, b := range w.boxes {
		b.down++
		w.after(b.plan.First, func() {
			b.down--
			b.revive()
		})
	}
	w.until(p.Heal)
	if w.failure == nil {
		w.recover()
	}
	w.end()
	return w, w.failure
}

func newWorld(ctx context.Context, p *Plan, trace *Trace) *World {
	w := &World{
		plan: p, trace: trace, oracle: newOracle(), offers: make(map[mesh.Edge]bool), ctx: ctx, start: time.Now(), woken: make(chan struct{}, 1),
		net: New(stream(p.Seed, "network"), p.Near),
	}
	w.net.Patience = 15 * time.Minute // as on Linux
	w.net.Trace = trace.Delivery
	w.base = newWeights(stream(p.Seed, "base"), p.Form, 0)
	w.oracle.hand(nobody, w.base, nil)
	for i := range p.Boxes {
		w.boxes = append(w.boxes, newBox(w, i))
	}
	for i := range w.boxes {
		for j := range w.boxes {
			w.shape(i, j, false)
		}
		w.boxes[i].furnish()
	}
	return w
}

// shape sets the links between two machines, to what they are normally or to a crawl.
func (w *World) shape(i, j int, slow bool) {
	link := w.plan.Far
	if w.plan.Boxes[i].Cluster == w.plan.Boxes[j].Cluster {
		link = w.plan.Near
	}
	if slow {
		link = Link{Latency: 900 * time.Millisecond, Jitter: 400 * time.Millisecond, Bandwidth: 4 << 10}
	}
	a, b := w.boxes[i].ip(), w.boxes[j].ip()
	w.net.SetLink(a, b, link)
	w.net.SetLink(b, a, link)
}

func (w *World) publishers() (ids []string) {
	for _, b := range w.boxes {
		if b.trainer() && !slices.Contains(ids, b.id.String()) {
			ids = append(ids, b.id.String())
		}
	}
	return ids
}

// after has act called by Live in a while.
func (w *World) after(d time.Duration, act func()) {
	w.seq++
	heap.Push(&w.agenda, &event{at: time.Since(w.start) + d, seq: w.seq, act: act})
}

// wake has Live look what happened.
func (w *World) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// until lives until a time, and stops at a failure. It looks at everything after everything that happens.
func (w *World) until(at time.Duration) {
	for w.failure == nil {
		next := min(at, time.Since(w.start)+sampleEvery)
		if len(w.agenda) > 0 {
			next = min(next, w.agenda[0].at)
		}
		timer := time.NewTimer(next - time.Since(w.start))
		select {
		case <-timer.C:
		case <-w.woken:
			timer.Stop()
		}
		synctest.Wait()
		w.happen()
		synctest.Wait()
		w.look()
		if time.Since(w.start) >= at {
			return
		}
	}
}

func (w *World) happen() {
	for _, b := range w.boxes {
		b.reap()
	}
	for len(w.agenda) > 0 && w.agenda[0].at <= time.Since(w.start) {
		heap.Pop(&w.agenda).(*event).act()
	}
}

func (w *World) look() {
	for _, b := range w.boxes {
		b.look()
		if b.plan.Manual && time.Since(w.start) > w.plan.Heal {
			b.confirm()
		}
		b.remember()
	}
}

// end ends everything and waits for it.
func (w *World) end() {
	w.over = true
	for _, b := range w.boxes {
		b.program.close()
		b.quit()
	}
	w.programs.Wait()
	for _, b := range w.boxes {
		for _, l := range b.lives {
			w.await(l)
		}
	}
	w.net.Close()
}

// goneWithin is how long a node may take to end.
const goneWithin = time.Minute

func (w *World) await(l *life) {
	select {
	case <-l.gone:
	case <-time.After(goneWithin):
		w.violate(endsWhenAsked, "%s: still there %s later", l.box.name(), goneWithin)
	}
}

// note adds a line to the trace.
func (w *World) note(format string, args ...any) { w.trace.Note(format, args...) }

// violate notes that an invariant does not hold. Only the first counts: the others may follow from it.
func (w *World) violate(invariant, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := &Failure{time.Since(w.start), invariant, fmt.Sprintf(format, args...)}
	w.note("VIOLATION %s", f)
	if w.failure == nil {
		w.failure = f
	}
	w.wake()
}

// Report tells a reader what went wrong; the failure itself comes last, where it is found.
func (w *World) Report() string {
	var b strings.Builder
	for _, x := range w.boxes {
		fmt.Fprintf(&b, "%s (%s), its last words:\n%s\n", x.name(), x.plan.Role, x.log)
	}
	fmt.Fprintf(&b, "%s\n%s\n", w.plan, w.failure)
	return b.String()
}

func newBox(w *World, i int) *box {
	b := &box{w: w, index: i, plan: &w.plan.Boxes[i], ways: make(map[mesh.Edge]bool), chance: stream(w.plan.Seed, fmt.Sprint("power", i))}
	b.key, b.id = keyOf(w.plan.Seed, b.plan.Key)
	b.disk = faults.NewDisk(b.now)
	b.tap = &tap{b: b, chance: stream(w.plan.Seed, fmt.Sprint("tap", i))}
	b.log = &tail{to: w.trace, name: b.name()}
	b.log.logger = zerolog.New(b.log).Level(zerolog.DebugLevel)
	if b.plan.Role == mesh.RoleTrainer {
		b.program = newProgram(b)
		w.programs.Go(b.program.run)
	}
	return b
}
