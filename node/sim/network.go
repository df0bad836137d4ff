package sim

import (
	"container/heap"
	"math/rand/v2"
	"sync"
	"time"
)

// Network joins machines by links. Make it inside the synctest bubble that uses it, and Close it there.
type Network struct {
	// Patience is how long a sender waits for a sign of life before it gives a connection up; zero is for ever. Linux
	// waits about a quarter of an hour. Set it before use.
	Patience time.Duration
	// Trace is told of every delivery, in order, if set. It must not call the Network. Set it before use.
	Trace func(Delivery)

	start time.Time
	timer *time.Timer
	done  chan struct{}
	loop  sync.WaitGroup

	mu       sync.Mutex // guards what follows, and everything of machines, links and connections
	rng      *rand.Rand
	standard Link
	machines map[string]*Machine
	links    map[[2]string]*link
	events   eventQueue
	seq      uint64
}

// Delivery is one arrival of a packet.
type Delivery struct {
	At       time.Duration // since the network began
	From, To string        // address and port
	Kind     Kind
	Data     []byte // not to be kept
}

// Kind says what a packet does.
type Kind string

// The kinds of packets.
const (
	Open  Kind = "open"
	Data  Kind = "data"
	Reset Kind = "reset"
)

// New returns a network whose links are like standard unless set otherwise. It draws from rng, which nobody else may use.
func New(rng *rand.Rand, standard Link) *Network {
	n := &Network{
		start: time.Now(), timer: time.NewTimer(time.Hour), done: make(chan struct{}),
		rng: rng, standard: standard,
		machines: make(map[string]*Machine), links: make(map[[2]string]*link),
	}
	n.arm()
	n.loop.Go(n.run)
	return n
}

// Close ends the network's own goroutine. Hosts should be closed before: nothing arrives any more.
func (n *Network) Close() {
	close(n.done)
	n.loop.Wait()
}

// run fires events. One goroutine and one timer serve all connections.
func (n *Network) run() {
	for {
		select {
		case <-n.done:
			n.timer.Stop()
			return
		case <-n.timer.C:
		}
		n.mu.Lock()
		n.fire()
		n.mu.Unlock()
	}
}

func (n *Network) fire() {
	for len(n.events) > 0 && n.events[0].at <= n.now() {
		e := heap.Pop(&n.events).(*event)
		if !e.off {
			e.act()
		}
	}
	n.arm()
}

// arm sets the timer to the next event. An idle network has none, so that a deadlock of its users is seen as one.
func (n *Network) arm() {
	if len(n.events) == 0 {
		n.timer.Stop()
		return
	}
	n.timer.Reset(n.events[0].at - n.now())
}

func (n *Network) now() time.Duration { return time.Since(n.start) }

// at has act called at a time since the start, under the lock.
func (n *Network) at(at time.Duration, act func()) *event {
	n.seq++
	e := &event{at: at, seq: n.seq, act: act}
	heap.Push(&n.events, e)
	if n.events[0] == e {
		n.arm()
	}
	return e
}

// event is something to come. Those of one instant happen in the order they were planned in.
type event struct {
	at  time.Duration
	seq uint64
	act func()
	off bool // not to happen after all
}

type eventQueue []*event

func (q eventQueue) Len() int { return len(q) }

func (q eventQueue) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].seq < q[j].seq
}

func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push is for container/heap.
func (q *eventQueue) Push(e any) { *q = append(*q, e.(*event)) }

// Pop is for container/heap.
func (q *eventQueue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return e
}
