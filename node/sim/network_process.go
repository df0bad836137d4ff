package sim

import (
	"context"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Process is what runs on a machine until it is killed. Its sockets are the only way onto the network.
type Process struct {
	machine   *Machine
	ended     bool
	gone      chan struct{} // closed at the end
	listeners map[int]*listener
	conns     []*conn
}

// Kill ends the process as the kernel does: its listeners are forgotten and its connections reset. Whatever of it still
// runs in this program finds every socket closed.
func (p *Process) Kill() {
	p.machine.n.mu.Lock()
	defer p.machine.n.mu.Unlock()
	p.end((*conn).reset)
}

func (p *Process) end(hangUp func(*conn)) {
	if p.ended {
		return
	}
	p.ended = true
	close(p.gone)
	clear(p.listeners)
	for _, c := range slices.Clone(p.conns) {
		hangUp(c)
	}
}

// Listen accepts connections on a port of the machine.
func (p *Process) Listen(addr *net.TCPAddr) (net.Listener, error) {
	n := p.machine.n
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &listener{owner: p, addr: addr, ready: sync.Cond{L: &n.mu}}
	switch {
	case p.ended:
		return nil, wrong("listen", addr, net.ErrClosed)
	case !addr.IP.Equal(p.machine.ip):
		return nil, wrong("listen", addr, syscall.EADDRNOTAVAIL)
	case p.listeners[addr.Port] != nil:
		return nil, wrong("listen", addr, syscall.EADDRINUSE)
	}
	p.listeners[addr.Port] = l
	return l, nil
}

// Dial connects to a machine. Without an answer it tries again until ctx ends.
func (p *Process) Dial(ctx context.Context, addr *net.TCPAddr) (net.Conn, error) {
	for wait := firstRetry; ; wait = min(2*wait, maxBackoff) {
		if trip, heard := p.machine.n.roundTrip(p.machine.name, addr.IP.String()); heard {
			if err := p.pause(ctx, trip); err != nil {
				return nil, wrong("dial", addr, err)
			}
			if c, err := p.open(addr); err != nil {
				return nil, wrong("dial", addr, err)
			} else if c != nil {
				return c, nil
			}
		}
		if err := p.pause(ctx, wait); err != nil {
			return nil, wrong("dial", addr, err)
		}
	}
}

// firstRetry is how soon a connection is asked for again.
const firstRetry = time.Second

// roundTrip says how long a packet and its answer take from now on, or that one of the two gets lost.
func (n *Network) roundTrip(from, to string) (time.Duration, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	there, back := n.link(from, to), n.link(to, from)
	if there.holed() || back.holed() {
		return 0, false
	}
	return there.delay() + back.delay(), true
}

func (p *Process) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.gone:
		return net.ErrClosed
	}
}

// open connects when the other side has had time to answer; it returns nil when it had a reason not to.
func (p *Process) open(addr *net.TCPAddr) (net.Conn, error) {
	n, to := p.machine.n, addr.IP.String()
	n.mu.Lock()
	defer n.mu.Unlock()
	there := n.link(p.machine.name, to)
	switch {
	case p.ended:
		return nil, net.ErrClosed
	case there.holed() || n.link(to, p.machine.name).holed():
		return nil, nil //nolint:nilnil // lost: neither connected nor refused
	}
	other := there.to.process
	if there.refuse || other == nil || other.listeners[addr.Port] == nil {
		return nil, syscall.ECONNREFUSED
	}
	if p.machine.port++; p.machine.port > lastPort {
		p.machine.port = firstPort
	}
	return n.connect(p, p.machine.port, other.listeners[addr.Port]), nil
}

func wrong(op string, addr net.Addr, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: addr, Err: err}
}

// listener is a net.Listener. The network's lock guards it.
type listener struct {
	owner   *Process
	addr    *net.TCPAddr
	waiting []*conn
	ready   sync.Cond
	closed  bool
}

// offer is the arrival of a connection.
func (l *listener) offer(c *conn) {
	if l.closed {
		c.reset()
		return
	}
	l.waiting = append(l.waiting, c)
	l.ready.Signal()
}

// Accept is that of net.Listener. When the process was killed it waits for Close: the dead do not complain.
func (l *listener) Accept() (net.Conn, error) {
	l.ready.L.Lock()
	defer l.ready.L.Unlock()
	for len(l.waiting) == 0 {
		if l.closed {
			return nil, wrong("accept", l.addr, net.ErrClosed)
		}
		l.ready.Wait()
	}
	c := l.waiting[0]
	l.waiting = l.waiting[1:]
	return c, nil
}

// Close is that of net.Listener.
func (l *listener) Close() error {
	l.ready.L.Lock()
	defer l.ready.L.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	if l.owner.listeners[l.addr.Port] == l {
		delete(l.owner.listeners, l.addr.Port)
	}
	for _, c := range l.waiting {
		c.reset()
	}
	l.waiting = nil
	l.ready.Broadcast()
	return nil
}

// Addr is that of net.Listener.
func (l *listener) Addr() net.Addr { return l.addr }
