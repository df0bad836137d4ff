package mesh

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/sparsecast/sparsecast/delta"
)

// Outcomes of a request besides success.
var (
	errBusy   = errors.New("peer is busy")
	errAbsent = errors.New("peer does not hold the block")
	errLost   = errors.New("stream to peer broke")
	errStore  = errors.New("store block")
)

// progressTick is the time between two reports of one lane.
const progressTick = 250 * time.Millisecond

// request asks one peer for one block, which ends up in the store.
type request struct {
	block    cid.Cid
	size     int  // bytes to accept
	exact    bool // not fewer either
	progress func()
	done     func(error) // called once, by the lane
}

// lane is a data stream to one peer with many requests under way. A request that was given up on is kept until its
// response comes, which then is as good as any; asking again meanwhile joins it and sends nothing.
type lane struct {
	l     *link
	queue chan uint64 // requests to be written; as large as pending may grow

	mu      sync.Mutex // guards what follows; taken after the link's
	pending map[uint64]*request
	next    uint64
	dead    bool
}

// ask sends a request, over the lane with the fewest. An error means that it was not sent.
func (l *link) ask(r *request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lanes = slices.DeleteFunc(l.lanes, (*lane).ended)
	if slices.ContainsFunc(l.lanes, func(la *lane) bool { return la.join(r) }) {
		return nil
	}
	if len(l.lanes) == 0 || len(l.lanes) < l.x.cfg.Streams && l.idlest().load() > 0 {
		la := &lane{l: l, queue: make(chan uint64, l.x.cfg.Pending), pending: make(map[uint64]*request)}
		if !l.x.spawn(la.run) {
			return errLost
		}
		l.lanes = append(l.lanes, la)
	}
	return l.idlest().add(r)
}

// idlest returns the lane with the fewest requests, of at least one.
func (l *link) idlest() *lane {
	return slices.MinFunc(l.lanes, func(a, b *lane) int { return a.load() - b.load() })
}

// join lets r share the fate of an earlier request for the same, if there is one.
func (la *lane) join(r *request) bool {
	la.mu.Lock()
	defer la.mu.Unlock()
	for _, old := range la.pending {
		if old.block == r.block && old.size == r.size && old.exact == r.exact {
			first := old.done
			old.done = func(err error) { first(err); r.done(err) }
			return true
		}
	}
	return false
}

func (la *lane) load() int {
	la.mu.Lock()
	defer la.mu.Unlock()
	return len(la.pending)
}

func (la *lane) ended() bool {
	la.mu.Lock()
	defer la.mu.Unlock()
	return la.dead
}

func (la *lane) add(r *request) error {
	la.mu.Lock()
	defer la.mu.Unlock()
	if la.dead {
		return errLost
	}
	if len(la.pending) >= cap(la.queue) {
		return errBusy
	}
	la.next++
	la.pending[la.next] = r
	la.queue <- la.next // never blocks: no more IDs than pending requests
	return nil
}

// run carries requests until the stream breaks, then fails those under way.
func (la *lane) run() {
	err := la.carry()
	la.mu.Lock()
	la.dead = true
	failed := la.pending
	la.pending = nil
	la.mu.Unlock()
	for _, r := range failed {
		r.done(fmt.Errorf("%w: %w", errLost, err))
	}
	la.l.ended(err)
}

func (la *lane) carry() error {
	l := la.l
	s, err := l.newStream(chunkProtocol)
	if err != nil {
		return fmt.Errorf("open data stream: %w", err)
	}
	heard := make(chan error, 1)
	if !l.x.spawn(func() { heard <- la.read(s) }) {
		s.Reset()
		return l.ctx.Err()
	}
	for {
		select {
		case <-l.ctx.Done():
			s.Reset()
			return errors.Join(l.ctx.Err(), <-heard)
		case err := <-heard:
			s.Reset()
			return err
		case id := <-la.queue:
			if err := la.write(s, id); err != nil {
				s.Reset()
				return errors.Join(err, <-heard)
			}
		}
	}
}

func (la *lane) write(s network.Stream, id uint64) error {
	la.mu.Lock()
	r := la.pending[id]
	la.mu.Unlock()
	if r == nil {
		return nil
	}
	d, err := delta.Digest(r.block)
	if err != nil {
		return fmt.Errorf("write request: %w", err)
	}
	s.SetWriteDeadline(time.Now().Add(la.l.x.cfg.Patience))
	if _, err := s.Write(encodeRequest(id, d)); err != nil {
		return fmt.Errorf("write request: %w", err)
	}
	la.arm(s)
	return nil
}

// arm gives the peer until its patience ends to say something, if it owes anything.
func (la *lane) arm(s network.Stream) {
	la.mu.Lock()
	defer la.mu.Unlock()
	var deadline time.Time
	if len(la.pending) > 0 {
		deadline = time.Now().Add(la.l.x.cfg.Patience)
	}
	s.SetReadDeadline(deadline)
}

// read takes in responses, in whatever order they come.
func (la *lane) read(s network.Stream) error {
	r := bufio.NewReader(s)
	for {
		id, st, size, err := readHeading(r)
		if err != nil {
			return err
		}
		req, err := la.settle(id, st, size)
		if err != nil {
			return err
		}
		la.l.life.Add(1)
		switch st {
		case statusAbsent:
			req.done(errAbsent)
		case statusBusy:
			req.done(errBusy)
		case statusOK:
			data, err := la.receive(s, r, req, size)
			if err != nil {
				req.done(fmt.Errorf("%w: %w", errLost, err))
				return err
			}
			req.done(la.l.x.keep(la.l, req.block, data))
		}
		la.arm(s)
	}
}

// settle finds the request of a response and checks the size against what was asked for.
func (la *lane) settle(id uint64, st status, size int) (*request, error) {
	la.mu.Lock()
	defer la.mu.Unlock()
	r := la.pending[id]
	if r == nil {
		return nil, fmt.Errorf("%w: response to no request", errMalformed)
	}
	switch {
	case st != statusOK:
	case r.exact && size != r.size:
		return nil, fmt.Errorf("%w: block of %d bytes, not %d", errMalformed, size, r.size)
	case size > r.size: // which may be honest, but is not worth reading past
		return nil, fmt.Errorf("block of %d bytes, above the limit of %d", size, r.size)
	}
	delete(la.pending, id)
	return r, nil
}

// receive reads a block whose size was checked. Every byte counts as progress.
func (la *lane) receive(s network.Stream, r io.Reader, req *request, size int) ([]byte, error) {
	data := make([]byte, size)
	var told time.Time
	for rest := data; len(rest) > 0; {
		if now := time.Now(); now.Sub(told) >= progressTick {
			s.SetReadDeadline(now.Add(la.l.x.cfg.Patience))
			req.progress()
			told = now
		}
		n, err := r.Read(rest)
		if rest = rest[n:]; err != nil && len(rest) > 0 {
			return nil, fmt.Errorf("read block: %w", err)
		}
		la.l.life.Add(1)
	}
	return data, nil
}
