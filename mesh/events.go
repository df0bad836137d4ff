package mesh

import (
	"errors"
	"fmt"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
)

// event is something that happened and that a download must know. Its owner alone applies it. An event carries
// the link that it came over, so that one of an earlier connection is told from one of this.
type event interface {
	apply(f *fetch, now time.Time)
}

type (
	peerJoined struct {
		l     *link
		hello Hello
	}
	peerLeft struct{ l *link } // sent after l has ended
	peerHas  struct {
		l    *link
		bits []byte
	}
	peerGained struct {
		l       *link
		indices []uint32
	}
	peerClaims struct {
		l        *link
		fetching bool
	}
	chunkProgress struct{ l *link }
	chunkArrived  struct {
		l     *link
		index int
	}
	chunkFailed struct {
		l     *link
		index int
		err   error
	}
)

func (e peerJoined) apply(f *fetch, now time.Time) {
	old := f.links[e.l.id]
	if e.l.ctx.Err() != nil || old == e.l {
		return
	}
	if old != nil {
		f.p.leave(now, e.l.id)
	}
	f.links[e.l.id] = e.l
	f.p.join(now, e.l.id, e.hello.Role, e.hello.Cluster)
}

func (e peerLeft) apply(f *fetch, now time.Time) {
	if f.current(e.l) {
		delete(f.links, e.l.id)
		f.p.leave(now, e.l.id)
	}
}

func (e peerHas) apply(f *fetch, now time.Time) {
	if !f.current(e.l) {
		return
	}
	all, err := parseBitmap(e.bits, len(f.m.Chunks))
	if err != nil {
		e.l.ended(err)
		return
	}
	f.p.haves(now, e.l.id, all)
}

func (e peerGained) apply(f *fetch, now time.Time) {
	if !f.current(e.l) {
		return
	}
	for _, i := range e.indices {
		if int(i) >= len(f.m.Chunks) {
			e.l.ended(fmt.Errorf("%w: chunk %d of %d", errMalformed, i, len(f.m.Chunks)))
			return
		}
		f.p.gained(now, e.l.id, int(i))
	}
}

func (e peerClaims) apply(f *fetch, now time.Time) {
	if f.current(e.l) {
		f.p.claim(now, e.l.id, e.fetching)
	}
}

func (e chunkProgress) apply(f *fetch, now time.Time) {
	if f.current(e.l) {
		f.p.heardFrom(now, e.l.id)
	}
}

func (e chunkArrived) apply(f *fetch, now time.Time) {
	if f.current(e.l) {
		f.p.arrived(now, e.l.id, e.index)
	}
	f.hold(e.index)
}

func (e chunkFailed) apply(f *fetch, now time.Time) {
	why := reasonLost
	switch {
	case errors.Is(e.err, errBusy):
		why = reasonBusy
	case errors.Is(e.err, errAbsent):
		why = reasonAbsent
	case errors.Is(e.err, delta.ErrMismatch):
		why = reasonBad
	case errors.Is(e.err, errStore):
		f.err = e.err
	}
	if f.current(e.l) {
		f.p.failed(now, e.l.id, e.index, why)
	}
}

// tellFetches sends an event to every download.
func (x *Exchange) tellFetches(e event) {
	x.mu.Lock()
	all := make([]*fetch, 0, len(x.fetches))
	for _, f := range x.fetches {
		all = append(all, f)
	}
	x.mu.Unlock()
	for _, f := range all {
		f.post(e)
	}
}

// tellFetch sends an event to the download of a manifest, if there is one.
func (x *Exchange) tellFetch(id cid.Cid, e event) {
	x.mu.Lock()
	f := x.fetches[id]
	x.mu.Unlock()
	if f != nil {
		f.post(e)
	}
}

// broadcast wakes those who wait for somebody to ask.
func (x *Exchange) broadcast() {
	x.mu.Lock()
	defer x.mu.Unlock()
	close(x.met)
	x.met = make(chan struct{})
}
