package sim

import (
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// conn is one end of a connection. The network's lock guards it.
type conn struct {
	n             *Network
	name          string // of this end: address and port
	owner         *Process
	local, remote *net.TCPAddr
	out, in       *flow
	received      [][]byte // and unread
	err           error    // why it has ended; nil while it lives
	listener      *listener
	readable      sync.Cond
	writable      sync.Cond
	readBy        deadline
	writeBy       deadline
}

var _ net.Conn = (*conn)(nil)

// connect makes the two ends of a connection. The second is handed to its listener when the first packet arrives.
func (n *Network) connect(from *Process, port int, l *listener) *conn {
	a := n.newConn(from, &net.TCPAddr{IP: from.machine.ip, Port: port}, l.addr)
	b := n.newConn(l.owner, l.addr, a.local)
	b.listener = l
	there, back := n.link(from.machine.name, l.owner.machine.name), n.link(l.owner.machine.name, from.machine.name)
	a.out = &flow{link: there, back: back, from: a, to: b}
	b.out = &flow{link: back, back: there, from: b, to: a}
	a.in, b.in = b.out, a.out
	b.out.list()
	a.out.send(Open, nil)
	return a
}

func (n *Network) newConn(p *Process, local, remote *net.TCPAddr) *conn {
	c := &conn{n: n, name: local.String(), owner: p, local: local, remote: remote}
	c.readable.L, c.writable.L = &n.mu, &n.mu
	p.conns = append(p.conns, c)
	return c
}

// take is the arrival of a packet.
func (c *conn) take(s segment) {
	switch {
	case s.kind == Reset:
		c.fail(syscall.ECONNRESET)
		c.in.drop()
		c.out.drop()
	case c.err != nil: // nobody is here any more
		c.out.send(Reset, nil)
	case s.kind == Open:
		c.listener.offer(c)
	default:
		c.received = append(c.received, s.data)
		c.readable.Signal()
	}
}

// fail ends the connection here, and here only. What was not read is lost.
func (c *conn) fail(err error) {
	if c.err != nil {
		return
	}
	c.err, c.received = err, nil
	c.readBy.stop()
	c.writeBy.stop()
	c.readable.Broadcast()
	c.writable.Broadcast()
	if i := slices.Index(c.owner.conns, c); i >= 0 {
		c.owner.conns = slices.Delete(c.owner.conns, i, i+1)
	}
}

// reset ends the connection here and tells the other side.
func (c *conn) reset() {
	if c.err == nil {
		c.fail(net.ErrClosed)
		c.out.send(Reset, nil)
	}
}

// Read is that of net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	for {
		switch {
		case c.err != nil:
			return 0, c.wrong("read", c.err)
		case c.readBy.passed:
			return 0, c.wrong("read", os.ErrDeadlineExceeded)
		case len(p) == 0:
			return 0, nil
		case len(c.received) > 0:
			return c.fill(p), nil
		}
		c.readable.Wait()
	}
}

func (c *conn) fill(p []byte) (filled int) {
	for filled < len(p) && len(c.received) > 0 {
		moved := copy(p[filled:], c.received[0])
		filled += moved
		if c.received[0] = c.received[0][moved:]; len(c.received[0]) == 0 {
			c.received[0] = nil
			c.received = c.received[1:]
		}
	}
	c.in.read += filled
	c.in.acknowledge()
	return filled
}

// Write is that of net.Conn.
func (c *conn) Write(p []byte) (written int, err error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	for {
		room := c.out.room()
		switch {
		case c.err != nil:
			return written, c.wrong("write", c.err)
		case c.writeBy.passed:
			return written, c.wrong("write", os.ErrDeadlineExceeded)
		case written == len(p):
			return written, nil
		case room <= 0:
			c.writable.Wait()
		default:
			size := min(len(p)-written, room, maxSegment)
			c.out.send(Data, slices.Clone(p[written:written+size]))
			written += size
		}
	}
}

// Close resets the connection.
func (c *conn) Close() error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	c.reset()
	return nil
}

// LocalAddr is that of net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr is that of net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline is that of net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline is that of net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error { return c.setDeadline(&c.readBy, &c.readable, t) }

// SetWriteDeadline is that of net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(&c.writeBy, &c.writable, t) }

func (c *conn) setDeadline(d *deadline, wake *sync.Cond, t time.Time) error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.err != nil {
		return c.wrong("set", c.err)
	}
	d.set(c.n, wake, t)
	return nil
}

func (c *conn) wrong(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// deadline wakes those who wait once it has passed.
type deadline struct {
	passed bool
	next   *event
}

func (d *deadline) set(n *Network, wake *sync.Cond, t time.Time) {
	d.stop()
	d.passed = false
	if t.IsZero() {
		return
	}
	pass := func() {
		d.passed = true
		wake.Broadcast()
	}
	if at := t.Sub(n.start); at <= n.now() {
		pass()
	} else {
		d.next = n.at(at, pass)
	}
}

func (d *deadline) stop() { cancel(&d.next) }
