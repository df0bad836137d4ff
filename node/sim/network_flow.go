package sim

import (
	"slices"
	"syscall"
	"time"
)

const (
	// window is how much a sender may have under way or unread, about what Linux allows.
	window = 4 << 20
	// maxSegment bounds a packet. Larger ones than Ethernet's save work, as segmentation offload does.
	maxSegment = 64 << 10
)

// flow is one direction of a connection: a queue of packets of which the first is on its way.
type flow struct {
	link, back *link // there, and of the acknowledgements
	from, to   *conn
	queue      []segment
	next       *event        // the arrival of the first; nil while none is to arrive
	last       time.Duration // the arrival of the newest
	stalled    bool          // packets were lost and wait to be sent again
	listed     bool          // among the link's flows
	giveUp     *event
	sent       int // bytes, ever
	read       int
	acked      int // of read, what the sender knows
}

type segment struct {
	at   time.Duration
	kind Kind
	data []byte
}

func (f *flow) room() int { return window - (f.sent - f.acked) }

func (f *flow) send(kind Kind, data []byte) {
	f.list()
	f.sent += len(data)
	f.last = max(f.last, f.link.due(len(data)))
	f.queue = append(f.queue, segment{f.last, kind, data})
	switch {
	case f.link.holed():
		f.stall()
	case len(f.queue) == 1:
		f.arm()
	}
}

func (f *flow) arm() { f.next = f.link.n.at(f.queue[0].at, f.arrive) }

// arrive delivers the first packet, unless it got lost.
func (f *flow) arrive() {
	f.next = nil
	if f.link.holed() {
		f.stall()
		return
	}
	s := f.queue[0]
	f.queue[0] = segment{}
	f.queue = f.queue[1:]
	if len(f.queue) > 0 {
		f.arm()
	}
	f.link.n.told(f, s)
	f.to.take(s)
}

// stall stops the flow until its link resumes, or the sender's patience ends.
func (f *flow) stall() {
	if f.stalled {
		return
	}
	f.stalled = true
	f.disarm()
	if n := f.link.n; n.Patience > 0 {
		f.giveUp = n.at(n.now()+n.Patience, func() {
			f.from.fail(syscall.ETIMEDOUT)
			f.drop()
		})
	}
}

// resume sends everything again that was lost, after a wait, and tells the other direction what was read.
func (f *flow) resume(wait time.Duration) {
	f.from.in.acknowledge()
	if !f.stalled {
		return
	}
	f.stalled = false
	cancel(&f.giveUp)
	now := f.link.n.now()
	f.last = now + wait
	for i := range f.queue {
		f.last = max(f.last, wait+f.link.due(len(f.queue[i].data)))
		f.queue[i].at = f.last
	}
	if len(f.queue) > 0 {
		f.arm()
	}
}

// acknowledge tells the sender what was read, if word gets through.
func (f *flow) acknowledge() {
	if !f.back.holed() && f.acked != f.read {
		f.acked = f.read
		f.from.writable.Broadcast()
	}
}

// list has the link know of the flow.
func (f *flow) list() {
	if !f.listed {
		f.listed = true
		f.link.flows = append(f.link.flows, f)
	}
}

// drop forgets what is under way, and the flow until something is sent on it.
func (f *flow) drop() {
	f.disarm()
	cancel(&f.giveUp)
	f.queue, f.stalled = nil, false
	if i := slices.Index(f.link.flows, f); i >= 0 {
		f.link.flows = slices.Delete(f.link.flows, i, i+1)
	}
	f.listed = false
}

func (f *flow) disarm() { cancel(&f.next) }

// cancel has an event that may have been planned not happen.
func cancel(e **event) {
	if *e != nil {
		(*e).off = true
		*e = nil
	}
}

func (n *Network) told(f *flow, s segment) {
	if n.Trace != nil {
		n.Trace(Delivery{n.now(), f.from.name, f.to.name, s.kind, s.data})
	}
}
