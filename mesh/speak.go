package mesh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// maxOutbox bounds the control messages that wait for a peer to read them.
const maxOutbox = 1024

var (
	errDeaf   = errors.New("peer does not read what it is told")
	errMute   = errors.New("peer answers no pings")
	errHungUp = errors.New("peer closed the control stream")
)

// speak opens a control stream and writes it until it breaks.
func (l *link) speak() error {
	s, err := l.newStream(controlProtocol)
	if err != nil {
		return fmt.Errorf("open control stream: %w", err)
	}
	defer context.AfterFunc(l.ctx, func() { s.Reset() })()
	hungUp := make(chan struct{})
	if !l.x.spawn(func() {
		defer close(hungUp)
		_, _ = io.ReadFull(s, make([]byte, 1)) // the peer never writes here: this returns when the stream ends
	}) {
		s.Reset()
		return context.Canceled
	}
	defer func() { <-hungUp }()
	defer s.Reset()
	defer l.begin()()
	return l.write(s, hungUp)
}

// write sends what gathers in the outbox, news of chunks, and pings.
func (l *link) write(s network.Stream, hungUp <-chan struct{}) error {
	cfg := l.x.cfg
	ping := time.NewTicker(cfg.PingEvery)
	defer ping.Stop()
	var later <-chan time.Time // when held-back news must go
	w := bufio.NewWriter(s)
	pulse := watch{life: l.life.Load()}
	for {
		batch, held := l.take(false)
		if held && later == nil {
			later = time.After(cfg.MoreDelay)
		}
		if err := l.flush(s, w, batch); err != nil {
			return err
		}
		select {
		case <-l.ctx.Done():
			return l.ctx.Err()
		case <-hungUp:
			return errHungUp
		case <-l.wake:
		case <-later:
			later = nil
			batch, _ := l.take(true)
			if err := l.flush(s, w, batch); err != nil {
				return err
			}
		case <-ping.C:
			if pulse.missed(l.life.Load()) >= cfg.PingMisses {
				return errMute
			}
			l.rescan()
			l.sendPing()
		}
	}
}

// watch counts the intervals in which a peer gave no sign of life.
type watch struct {
	life   uint64
	misses int
}

func (w *watch) missed(life uint64) int {
	w.misses++
	if life != w.life {
		w.life, w.misses = life, 0
	}
	return w.misses
}

func (l *link) flush(s network.Stream, w *bufio.Writer, batch []control) error {
	for _, m := range batch {
		frame, err := encodeControl(m)
		if err != nil {
			return fmt.Errorf("write control stream: %w", err)
		}
		s.SetWriteDeadline(time.Now().Add(l.x.cfg.Patience))
		if _, err := w.Write(frame); err != nil {
			return fmt.Errorf("write control stream: %w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write control stream: %w", err)
	}
	if l.isDeaf() {
		return errDeaf
	}
	return nil
}

// begin fills the outbox with what a new control stream starts with; the function returned ends that.
func (l *link) begin() (end func()) {
	x, self := l.x, l.x.self
	x.mu.Lock() // a download that begins meanwhile tells after this
	defer x.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open, l.deaf = true, false
	l.outbox = []control{{Kind: kindHello, Role: string(self.Role), Cluster: self.Cluster, Runs: self.Runs}}
	for id := range x.fetches {
		l.outbox = append(l.outbox, aboutManifest(kindWant, id))
	}
	for id, sub := range l.subs {
		l.outbox = append(l.outbox, sub.have(id))
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open, l.outbox, l.ping = false, nil, 0
	}
}

// tell puts a message into the outbox. Without an open stream it is dropped: begin makes up for that.
func (l *link) tell(m control) {
	l.mu.Lock()
	l.tellLocked(m)
	l.mu.Unlock()
	l.nudge()
}

func (l *link) tellLocked(m control) {
	switch {
	case !l.open:
	case len(l.outbox) >= maxOutbox:
		l.deaf = true
	default:
		l.outbox = append(l.outbox, m)
	}
}

func (l *link) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take empties the outbox. News of chunks is added once a batch is full, or all of it when due; held tells
// whether some remains.
func (l *link) take(due bool) (batch []control, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch, l.outbox = l.outbox, nil
	for id, sub := range l.subs {
		for len(sub.fresh) >= l.x.cfg.MoreBatch || due && len(sub.fresh) > 0 {
			batch = append(batch, sub.more(id))
		}
		held = held || len(sub.fresh) > 0
	}
	return batch, held
}

func (l *link) isDeaf() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deaf
}

// sendPing keeps at most one ping under way.
func (l *link) sendPing() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ping++
	l.pinged = time.Now()
	l.tellLocked(control{Kind: kindPing, Nonce: l.ping})
}

func (l *link) pong(nonce uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if nonce != 0 && nonce == l.ping {
		l.rtt.Store(int64(time.Since(l.pinged)))
	}
}
