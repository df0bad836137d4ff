package mesh

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/sparsecast/sparsecast/delta"
)

const (
	fetchTick   = 100 * time.Millisecond // between two looks at the clock
	lackingTick = time.Second            // between two looks at who has what is missing
	fetchEvents = 256                    // events that may wait; senders wait beyond
)

// fetch is one download. The goroutine of its caller owns it; all others send it events.
type fetch struct {
	x      *Exchange
	id     cid.Cid
	m      *delta.Manifest
	places map[cid.Cid][]int // where a chunk is in the manifest
	events chan event
	done   chan struct{} // closed when nobody takes events any more
	p      *picker
	links  map[peer.ID]*link // peers the picker knows
	err    error             // why the download cannot go on
}

// Fetch brings all chunks of m, whose content ID is id, into the store. Chunks that are there already are not
// fetched again. It waits for as long as nobody has them, until ctx ends; a store that cannot write ends it.
// progress, unless nil, is called from this goroutine with the number of chunks that are here, and soon returns.
func (x *Exchange) Fetch(ctx context.Context, id cid.Cid, m *delta.Manifest, progress func(done, total int)) error {
	if err := x.keepManifest(id, m); err != nil {
		return fmt.Errorf("fetch %s: %w", id, err)
	}
	f, err := x.enrol(ctx, id, m)
	if err != nil {
		return err
	}
	defer x.leave(f)
	if progress == nil {
		progress = func(int, int) {}
	}
	if err := f.run(ctx, progress); err != nil {
		return fmt.Errorf("fetch %s: %w", id, err)
	}
	return nil
}

// keepManifest puts m into the store, where it tells peers which chunks there are, even after the download.
// It finds out whether id names m on the way.
func (x *Exchange) keepManifest(id cid.Cid, m *delta.Manifest) error {
	e, err := m.Encode()
	if err != nil {
		return err
	}
	if err := delta.Check(id, e.Root); err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	for _, b := range append(e.Leaves, e.Root) { // leaves first: a root that is here has all its leaves
		if err := x.store.Put(delta.Sum(b), b); err != nil {
			return fmt.Errorf("%w: manifest: %w; free space in the store", errStore, err)
		}
	}
	return nil
}

// enrol registers a download, after any other of the same manifest, and tells all peers.
func (x *Exchange) enrol(ctx context.Context, id cid.Cid, m *delta.Manifest) (*fetch, error) {
	f := &fetch{
		x: x, id: id, m: m, places: make(map[cid.Cid][]int, len(m.Chunks)),
		events: make(chan event, fetchEvents), done: make(chan struct{}), links: make(map[peer.ID]*link),
	}
	for i, c := range m.Chunks {
		f.places[c] = append(f.places[c], i)
	}
	f.p = newPicker(x.picking(), x.host.ID(), x.self.Cluster, m.Chunks, time.Now(), x.cfg.Seed)
	for {
		x.mu.Lock()
		other := x.fetches[id]
		if other == nil {
			x.fetches[id] = f
			x.mu.Unlock()
			break
		}
		x.mu.Unlock()
		select {
		case <-other.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("fetch %s: wait for an earlier download of it: %w", id, ctx.Err())
		}
	}
	for _, l := range x.allLinks() {
		l.tell(aboutManifest(kindWant, id))
	}
	return f, nil
}

func (x *Exchange) picking() pickConfig {
	return pickConfig{
		window: x.cfg.Window, maxWindow: x.cfg.MaxWindow,
		takeover: x.cfg.Takeover, stall: x.cfg.Stall, slow: x.cfg.Patience,
		presume: x.cfg.Takeover, endgame: 8, relay: x.self.Role == RoleRelay,
	}
}

// leave takes a download off the books.
func (x *Exchange) leave(f *fetch) {
	x.mu.Lock()
	delete(x.fetches, f.id)
	x.mu.Unlock()
	close(f.done)
	for _, l := range x.allLinks() {
		l.tell(aboutManifest(kindUnwant, f.id))
	}
}

func (x *Exchange) allLinks() []*link {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := make([]*link, 0, len(x.links))
	for _, l := range x.links {
		all = append(all, l)
	}
	return all
}

func (f *fetch) run(ctx context.Context, progress func(done, total int)) error {
	f.begin()
	tick := time.NewTicker(fetchTick)
	defer tick.Stop()
	look := time.NewTicker(lackingTick)
	defer look.Stop()
	defer f.x.lacks.clear(f.id)
	total, told := len(f.m.Chunks), -1
	for {
		if here := total - len(f.p.missing); here != told {
			progress(here, total)
			told = here
		}
		if f.p.done() || f.err != nil {
			return f.err
		}
		for _, a := range f.p.next(time.Now()) {
			f.send(a)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d chunks are here: %w", told, total, ctx.Err())
		case e := <-f.events:
			e.apply(f, time.Now())
			f.drain()
		case <-tick.C:
		case <-look.C:
			f.noteLacking()
		}
	}
}

// begin counts what is here and looks at who is there.
func (f *fetch) begin() {
	for i, c := range f.m.Chunks {
		if f.x.store.Has(c) {
			f.p.hold(i)
		}
	}
	now := time.Now()
	for _, l := range f.x.friends() {
		peerJoined{l, *l.heardHello()}.apply(f, now)
		peerClaims{l, l.wants(f.id)}.apply(f, now)
	}
	for _, l := range f.x.allLinks() {
		l.learn(f.id, f.m.Chunks)
	}
}

// drain applies the events that wait already, so that a burst is weighed once.
func (f *fetch) drain() {
	for range fetchEvents {
		select {
		case e := <-f.events:
			e.apply(f, time.Now())
		default:
			return
		}
	}
}

// post sends an event to the owner of the download; it waits for room, but not beyond the end.
func (f *fetch) post(e event) {
	select {
	case f.events <- e:
	case <-f.done:
	}
}

// current tells whether l is the connection that the picker's knowledge of its peer is about.
func (f *fetch) current(l *link) bool { return f.links[l.id] == l }

// hold notes that chunk i, and any that is equal, is in the store, and tells those who want to hear it.
func (f *fetch) hold(i int) {
	for _, k := range f.places[f.m.Chunks[i]] {
		if f.p.at[k] < 0 {
			continue
		}
		f.p.hold(k)
		for _, l := range f.x.allLinks() {
			l.announce(f.id, k)
		}
	}
}

// send carries out what the picker decided.
func (f *fetch) send(a ask) {
	l := f.links[a.to]
	err := l.ask(&request{
		block: f.m.Chunks[a.chunk], size: f.m.ChunkLen(a.chunk), exact: true,
		progress: func() { f.post(chunkProgress{l}) },
		done: func(err error) {
			if err != nil {
				f.post(chunkFailed{l, a.chunk, err})
				return
			}
			f.post(chunkArrived{l, a.chunk})
		},
	})
	if err != nil && !errors.Is(err, errBusy) {
		err = fmt.Errorf("%w: %w", errLost, err)
	}
	if err != nil {
		chunkFailed{l, a.chunk, err}.apply(f, time.Now())
	}
}
