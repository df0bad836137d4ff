package sim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// pair is two machines with a connection between them; b listens.
type pair struct {
	n    *Network
	a, b *Process
	l    net.Listener
	from net.Conn // of a
	to   net.Conn // of b
}

const trip = 20 * time.Millisecond

// between runs f in virtual time on a connected pair.
func between(t *testing.T, shape Link, f func(t *testing.T, p *pair)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &pair{n: New(rand.New(rand.NewPCG(1, 2)), shape)}
		defer p.n.Close()
		p.a, p.b = p.n.Machine("10.0.0.1").Start(), p.n.Machine("10.0.0.2").Start()
		var err error
		if p.l, err = p.b.Listen(port(2)); err != nil {
			t.Fatal(err)
		}
		p.dial(t)
		f(t, p)
	})
}

func port(host byte) *net.TCPAddr {
	return &net.TCPAddr{IP: net.IPv4(10, 0, 0, host).To4(), Port: 4001}
}

func (p *pair) dial(t *testing.T) {
	t.Helper()
	var err error
	if p.from, err = p.a.Dial(t.Context(), port(2)); err != nil {
		t.Fatal(err)
	}
	if p.to, err = p.l.Accept(); err != nil {
		t.Fatal(err)
	}
}

// pass sends a few bytes and returns how long they took.
func pass(t *testing.T, from, to net.Conn) time.Duration {
	t.Helper()
	start := time.Now()
	if _, err := from.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(to, got); err != nil || string(got) != "hello" {
		t.Fatalf("read %q: %v", got, err)
	}
	return time.Since(start)
}

// fails wants a read of c to end with an error of a kind after exactly a time.
func fails(t *testing.T, c net.Conn, want error, after time.Duration) {
	t.Helper()
	start := time.Now()
	_, err := c.Read(make([]byte, 1))
	if took := time.Since(start); !errors.Is(err, want) || took != after {
		t.Fatalf("read: %v after %s, want %v after %s", err, took, want, after)
	}
}

func TestNetworkLatencyIsWhatWasAsked(t *testing.T) {
	between(t, Link{Latency: trip}, func(t *testing.T, p *pair) {
		p.n.SetLink("10.0.0.2", "10.0.0.1", Link{Latency: 3 * trip})
		if there, back := pass(t, p.from, p.to), pass(t, p.to, p.from); there != trip || back != 3*trip {
			t.Fatalf("%s there and %s back", there, back)
		}
		start := time.Now()
		p.dial(t) // syn, its answer, and the answer to that
		if took := time.Since(start); took != 5*trip {
			t.Fatalf("dial and accept took %s", took)
		}
	})
}

// TestNetworkBandwidthIsShared: two connections that send a megabyte each need the link for two.
func TestNetworkBandwidthIsShared(t *testing.T) {
	between(t, Link{Latency: trip, Bandwidth: 1 << 20}, func(t *testing.T, p *pair) {
		first, at := p.from, p.to
		p.dial(t)
		start := time.Now()
		for _, c := range []net.Conn{first, p.from} {
			if _, err := c.Write(make([]byte, 1<<20)); err != nil {
				t.Fatal(err)
			}
		}
		for i, c := range []net.Conn{at, p.to} {
			if _, err := io.ReadFull(c, make([]byte, 1<<20)); err != nil {
				t.Fatal(err)
			}
			if took, want := time.Since(start), time.Duration(i+1)*time.Second+trip; took != want {
				t.Errorf("connection %d took %s, want %s", i, took, want)
			}
		}
	})
}

// TestNetworkKeepsOrder sends much over a link with great jitter while it falls into holes and comes out of them.
func TestNetworkKeepsOrder(t *testing.T) {
	between(t, Link{Latency: trip, Jitter: 10 * trip}, func(t *testing.T, p *pair) {
		sent := make([]byte, 3*window+12345)
		rand.NewChaCha8([32]byte{1}).Read(sent)
		var work sync.WaitGroup
		defer work.Wait()
		work.Go(func() {
			for rest := sent; len(rest) > 0; {
				n := min(len(rest), 100_000)
				if _, err := p.from.Write(rest[:n]); err != nil {
					t.Error(err)
				}
				rest = rest[n:]
				time.Sleep(trip / 2)
			}
		})
		work.Go(func() {
			for range 5 {
				time.Sleep(5 * trip)
				p.n.BlackHole("10.0.0.1", "10.0.0.2", true)
				time.Sleep(time.Second)
				p.n.BlackHole("10.0.0.1", "10.0.0.2", false)
			}
		})
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(p.to, got); err != nil || !bytes.Equal(got, sent) {
			t.Fatalf("not what was sent: %v", err)
		}
	})
}

// TestNetworkBlackHole: the sender fills its window and blocks, the reader hears nothing, and both go on afterwards.
func TestNetworkBlackHole(t *testing.T) {
	between(t, Link{Latency: trip}, func(t *testing.T, p *pair) {
		p.n.BlackHole("10.0.0.1", "10.0.0.2", true)
		if err := p.from.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		n, err := p.from.Write(make([]byte, 2*window))
		if n != window || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("%d bytes accepted, %v", n, err)
		}
		if err := p.to.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		fails(t, p.to, os.ErrDeadlineExceeded, time.Minute)
		p.n.Heal()
		start := time.Now()
		if err := p.to.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(p.to, make([]byte, window)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < trip || took > trip+maxBackoff {
			t.Errorf("the data came %s after healing", took)
		}
	})
}

// TestNetworkPatienceEnds: the sender gives up; the other side learns of it when it writes.
func TestNetworkPatienceEnds(t *testing.T) {
	between(t, Link{Latency: trip}, func(t *testing.T, p *pair) {
		p.n.Patience = time.Minute
		p.n.Partition([]string{"10.0.0.1"}, []string{"10.0.0.2"})
		if _, err := p.from.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		fails(t, p.from, syscall.ETIMEDOUT, time.Minute)
		p.n.Heal()
		if _, err := p.to.Write([]byte("are you there?")); err != nil {
			t.Fatal(err)
		}
		fails(t, p.to, syscall.ECONNRESET, 2*trip)
	})
}

func TestNetworkCutResetsBoth(t *testing.T) {
	between(t, Link{Latency: trip}, func(t *testing.T, p *pair) {
		p.n.Cut("10.0.0.1", "10.0.0.2")
		fails(t, p.from, syscall.ECONNRESET, 0)
		fails(t, p.to, syscall.ECONNRESET, 0)
	})
}

func TestNetworkRefuses(t *testing.T) {
	between(t, Link{Latency: trip}, func(t *testing.T, p *pair) {
		p.n.Refuse("10.0.0.1", "10.0.0.2", true)
		start := time.Now()
		_, err := p.a.Dial(t.Context(), port(2))
		if took := time.Since(start); !errors.Is(err, syscall.ECONNREFUSED) || took != 2*trip {
			t.Fatalf("%v after %s", err, took)
		}
		pass(t, p.from, p.to)
		p.n.Heal()
		p.dial(t)
	})
}

// TestNetworkDialsIntoNothing: no answer is waited for until the caller has had enough, and is taken when it comes.
func TestNetworkDialsIntoNothing(t *testing.T) {
	between(t, Link{Latency: trip}, func(t *testing.T, p *pair) {
		p.n.BlackHole("10.0.0.2", "10.0.0.1", true)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := p.a.Dial(ctx, port(2)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(4 * time.Second)
			p.n.Heal()
		}()
		start := time.Now()
		p.dial(t) // asks after 0, 1, 3 and 7 seconds
		if took := time.Since(start); took != 7*time.Second+3*trip {
			t.Errorf("dial took %s", took)
		}
	})
}

// TestNetworkKilled: the other side hears a reset, the dead can do nothing, and the next process is reached at the same
// address.
func TestNetworkKilled(t *testing.T) {
	between(t, Link{Latency: trip}, func(t *testing.T, p *pair) {
		p.b.Kill()
		fails(t, p.to, net.ErrClosed, 0)
		fails(t, p.from, syscall.ECONNRESET, trip)
		if _, err := p.b.Dial(t.Context(), port(1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the dead dial: %v", err)
		}
		if _, err := p.a.Dial(t.Context(), port(2)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("the dead answer: %v", err)
		}
		p.b = p.n.Machine("10.0.0.2").Start()
		var err error
		if p.l, err = p.b.Listen(port(2)); err != nil {
			t.Fatal(err)
		}
		p.dial(t)
		pass(t, p.from, p.to)
	})
}

// TestNetworkPowerOff: nothing is heard of a machine without power, and after its return it knows of nothing.
func TestNetworkPowerOff(t *testing.T) {
	between(t, Link{Latency: trip}, func(t *testing.T, p *pair) {
		m := p.n.Machine("10.0.0.2")
		m.PowerOff()
		if err := p.from.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if _, err := p.from.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		fails(t, p.from, os.ErrDeadlineExceeded, time.Hour)
		m.PowerOn()
		if err := p.from.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.from.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("read: %v", err)
		}
	})
}

func TestNetworkListens(t *testing.T) {
	between(t, Link{Latency: trip}, func(t *testing.T, p *pair) {
		if _, err := p.b.Listen(port(2)); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("twice: %v", err)
		}
		if _, err := p.b.Listen(port(3)); !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Errorf("at another's address: %v", err)
		}
		accepted := make(chan error)
		go func() {
			_, err := p.l.Accept()
			accepted <- err
		}()
		synctest.Wait()
		p.l.Close()
		if err := <-accepted; !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept: %v", err)
		}
	})
}
