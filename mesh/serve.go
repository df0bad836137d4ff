package mesh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/sparsecast/sparsecast/delta"
)

const (
	maxServed = 4               // data streams of one peer at a time
	piece     = 64 << 10        // bytes written under one deadline
	slotTime  = time.Second     // without progress, after which a slow reader keeps no upload slot from others
	helloTime = 3 * time.Second // within which a peer that asks must have said hello
)

// job is a request to be answered.
type job struct {
	id    uint64
	block cid.Cid
	busy  bool
}

// serve answers the requests of one data stream. Only peers of this run are served.
func (l *link) serve(s network.Stream) {
	if !l.admit() {
		return
	}
	defer l.dismiss()
	if !l.friendly() {
		return
	}
	ctx, cancel := context.WithCancel(l.ctx)
	answers := &answers{l: l, s: s, queue: make(chan job, 2*l.x.cfg.Pending)}
	written := make(chan struct{})
	if !l.x.spawn(func() {
		defer close(written)
		defer s.Reset()
		answers.run(ctx)
	}) {
		cancel()
		return
	}
	err := answers.read(ctx)
	s.Reset()
	cancel()
	<-written
	l.ended(err)
}

// admit bounds the data streams that a peer may open.
func (l *link) admit() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.serving >= maxServed {
		return false
	}
	l.serving++
	return true
}

func (l *link) dismiss() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serving--
}

// friendly tells whether the peer is of this run. Its hello may be a little behind its first request.
func (l *link) friendly() bool {
	t := time.NewTimer(helloTime)
	defer t.Stop()
	select {
	case <-l.met:
		return l.x.shares(l.heardHello())
	case <-t.C:
	case <-l.ctx.Done():
	}
	return false
}

// answers is one data stream being served: read queues requests, run answers them in order.
type answers struct {
	l       *link
	s       network.Stream
	queue   chan job
	waiting atomic.Int64 // requests that will be answered with a block
}

// read queues requests. When even the answers "busy" pile up, it stops reading, and the peer must stop writing.
func (a *answers) read(ctx context.Context) error {
	r := bufio.NewReader(a.s)
	for {
		id, block, err := readRequest(r)
		if err != nil {
			return err
		}
		a.l.life.Add(1)
		j := job{id: id, block: block, busy: a.waiting.Load() >= int64(a.l.x.cfg.Pending)}
		if !j.busy {
			a.waiting.Add(1)
		}
		select {
		case a.queue <- j:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (a *answers) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-a.queue:
			if err := a.answer(ctx, j); err != nil {
				a.l.x.log.Debug().Stringer("peer", a.l.id).Err(err).Msg("data stream ended")
				return
			}
		}
	}
}

func (a *answers) answer(ctx context.Context, j job) error {
	if j.busy {
		return a.write(encodeHeading(j.id, statusBusy, 0))
	}
	defer a.waiting.Add(-1)
	x := a.l.x
	select {
	case x.uploads <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	release := sync.OnceFunc(func() { <-x.uploads })
	defer release()
	data, err := x.store.Get(j.block)
	switch {
	case errors.Is(err, ErrNotFound) || len(data) > delta.MaxBlock:
		return a.write(encodeHeading(j.id, statusAbsent, 0))
	case err != nil:
		x.log.Warn().Stringer("block", j.block).Err(err).Msg("cannot serve block")
		return a.write(encodeHeading(j.id, statusBusy, 0))
	}
	// A reader that stalls loses the slot but not its block.
	slot := time.AfterFunc(slotTime, release)
	defer slot.Stop()
	return a.send(j.id, data, func() { slot.Reset(slotTime) })
}

// send writes a block in pieces; progress is called after each.
func (a *answers) send(id uint64, data []byte, progress func()) error {
	if err := a.write(encodeHeading(id, statusOK, len(data))); err != nil {
		return err
	}
	for rest := data; len(rest) > 0; progress() {
		n := min(piece, len(rest))
		if err := a.write(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
		a.l.countSent(n)
	}
	a.l.x.stats.ChunksSent.Add(1)
	return nil
}

func (a *answers) write(b []byte) error {
	a.s.SetWriteDeadline(time.Now().Add(a.l.x.cfg.Patience))
	if _, err := a.s.Write(b); err != nil {
		return fmt.Errorf("write response: %w", err)
	}
	a.l.life.Add(1)
	return nil
}

func (l *link) countSent(n int) {
	l.sent.Add(uint64(n))
	l.x.stats.ChunkBytesSent.Add(uint64(n))
	l.x.sentTo[l.heardHello().Role].Add(uint64(n)) // greet let no other role in
}
