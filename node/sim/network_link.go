package sim

import (
	"slices"
	"syscall"
	"time"
)

// Link is what one direction between two machines is like.
type Link struct {
	Latency time.Duration // of every packet
	Jitter  time.Duration // up to this is added, drawn for each packet
	// Bandwidth in bytes a second is shared by all connections of the link; zero is no bound.
	Bandwidth int64
}

// maxBackoff bounds the wait between two retransmissions.
const maxBackoff = 10 * time.Second

// link is one direction between two machines.
type link struct {
	Link
	n        *Network
	from, to *Machine
	refuse   bool
	hole     bool
	since    time.Duration // when the hole opened
	free     time.Duration // when the last packet has left
	flows    []*flow       // that run over it, oldest first
}

// link returns the link between two machines, which it makes on first use.
func (n *Network) link(from, to string) *link {
	key := [2]string{from, to}
	l := n.links[key]
	if l == nil {
		l = &link{Link: n.standard, n: n, from: n.machine(from), to: n.machine(to)}
		n.links[key] = l
	}
	return l
}

// holed tells whether packets get lost.
func (l *link) holed() bool { return l.hole || l.from.off || l.to.off }

// due says when a packet of size bytes, sent now, arrives.
func (l *link) due(size int) time.Duration {
	at := max(l.n.now(), l.free)
	if l.Bandwidth > 0 {
		at += time.Duration(float64(size) / float64(l.Bandwidth) * float64(time.Second))
		l.free = at
	}
	return at + l.delay()
}

func (l *link) delay() time.Duration {
	if l.Jitter <= 0 {
		return l.Latency
	}
	return l.Latency + time.Duration(l.n.rng.Int64N(int64(l.Jitter)+1))
}

// resume lets what was held up flow again, each connection after a wait of its own: TCP tries again at growing
// intervals, up to as long as the outage has lasted.
func (l *link) resume() {
	if l.holed() {
		return
	}
	outage := min(l.n.now()-l.since, maxBackoff)
	for _, f := range slices.Clone(l.flows) {
		f.resume(time.Duration(l.n.rng.Int64N(int64(outage) + 1)))
	}
}

// SetLink says what the way from one machine to another is like, for packets sent from now on.
func (n *Network) SetLink(from, to string, shape Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.link(from, to).Link = shape
}

// Refuse has new connections from one machine to another refused, or no more. Open ones stay.
func (n *Network) Refuse(from, to string, on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.link(from, to).refuse = on
}

// BlackHole has all packets from one machine to another vanish, or arrive again.
func (n *Network) BlackHole(from, to string, on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.link(from, to).setHole(on)
}

func (l *link) setHole(on bool) {
	if l.hole == on {
		return
	}
	l.hole = on
	if on {
		l.since = l.n.now()
		return
	}
	l.resume()
}

// Cut resets every connection between two machines, at once and for both.
func (n *Network) Cut(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range []*link{n.link(a, b), n.link(b, a)} {
		for _, f := range slices.Clone(l.flows) {
			f.from.fail(syscall.ECONNRESET)
			f.drop()
		}
	}
}

// Partition has all packets between machines of different sets vanish, and no others. Machines in no set are left as
// they are.
func (n *Network) Partition(sets ...[]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, set := range sets {
		for j, other := range sets {
			for _, from := range set {
				for _, to := range other {
					if from != to {
						n.link(from, to).setHole(i != j)
					}
				}
			}
		}
	}
}

// Heal ends all black holes, partitions and refusals.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.sortedLinks() {
		l.refuse = false
		l.setHole(false)
	}
}

// sortedLinks is in an order that does not depend on the map's.
func (n *Network) sortedLinks() []*link {
	var keys [][2]string
	for k := range n.links {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	sorted := make([]*link, 0, len(keys))
	for _, k := range keys {
		sorted = append(sorted, n.links[k])
	}
	return sorted
}
