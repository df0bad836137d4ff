package mesh

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/sparsecast/sparsecast/delta"
	"golang.org/x/time/rate"
)

// An honest peer sends about twenty control messages a second and manifest; more than this waits its turn.
const (
	controlRate  = 256
	controlBurst = 512
)

// hear reads a peer's control stream until it ends. The newest stream counts.
func (l *link) hear(s network.Stream) {
	l.adopt(s)
	defer l.abandon(s)
	r := bufio.NewReader(s)
	limit := rate.NewLimiter(controlRate, controlBurst)
	for first := true; ; first = false {
		s.SetReadDeadline(time.Now().Add(l.x.cfg.Patience + l.x.cfg.PingEvery))
		m, err := readControl(r)
		if err == nil && first != (m.Kind == kindHello) {
			err = fmt.Errorf("%w: kind %d at the wrong time", errMalformed, m.Kind)
		}
		if err == nil {
			l.life.Add(1)
			err = l.handle(m)
		}
		if err == nil {
			err = limit.Wait(l.ctx)
		}
		if err != nil {
			l.ended(err)
			return
		}
	}
}

// ended looks at why a stream ended: a peer that broke the protocol is cut off.
func (l *link) ended(err error) {
	if errors.Is(err, errMalformed) {
		l.x.stats.MessagesMalformed.Add(1)
		l.x.offend(l, err)
	}
}

// adopt makes s the stream that is heard; what was wanted over an earlier one is forgotten.
func (l *link) adopt(s network.Stream) {
	l.mu.Lock()
	old := l.in
	l.in = s
	l.mu.Unlock()
	if old != nil {
		old.Reset()
	}
	l.unwantAll()
}

func (l *link) abandon(s network.Stream) {
	l.mu.Lock()
	current := l.in == s
	if current {
		l.in = nil
	}
	l.mu.Unlock()
	if current {
		l.unwantAll()
	}
}

func (l *link) unwantAll() {
	l.mu.Lock()
	old := l.subs
	l.subs = make(map[cid.Cid]*subscription)
	l.mu.Unlock()
	for id := range old {
		l.x.tellFetch(id, peerClaims{l, false})
	}
}

func (l *link) handle(m control) error {
	switch m.Kind {
	case kindHello:
		return l.greet(Hello{Role: Role(m.Role), Cluster: m.Cluster, Runs: m.Runs})
	case kindPing:
		l.tell(control{Kind: kindPong, Nonce: m.Nonce})
		return nil
	case kindPong:
		l.pong(m.Nonce)
		return nil
	}
	if !l.x.shares(l.heardHello()) {
		return nil // not our business
	}
	id, err := delta.FromDigest(m.Manifest)
	if err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	switch m.Kind {
	case kindWant:
		return l.want(id)
	case kindUnwant:
		l.unwant(id)
	case kindHave:
		l.x.tellFetch(id, peerHas{l, m.Bits})
	case kindMore:
		l.x.tellFetch(id, peerGained{l, m.Indices})
	}
	return nil
}

// greet takes a peer's hello.
func (l *link) greet(h Hello) error {
	if !h.Role.Valid() || len(h.Cluster) > maxName {
		return fmt.Errorf("%w: hello with role %q", errMalformed, h.Role)
	}
	l.mu.Lock()
	first := l.hello == nil
	l.hello = &h
	l.mu.Unlock()
	if first {
		close(l.met)
	}
	l.came(h, first)
	if l.x.shares(&h) {
		l.x.tellFetches(peerJoined{l, h})
		l.x.broadcast()
	}
	return nil
}

// want subscribes the peer to a manifest and tells it what is here.
func (l *link) want(id cid.Cid) error {
	sub := new(subscription)
	l.mu.Lock()
	_, known := l.subs[id]
	if !known && len(l.subs) >= maxWants {
		l.mu.Unlock()
		return fmt.Errorf("%w: more than %d wants", errMalformed, maxWants)
	}
	l.subs[id] = sub // before the scan, so that no chunk gained meanwhile is missed
	l.mu.Unlock()
	l.refresh(sub, l.x.chunksOf(id))
	l.mu.Lock()
	l.tellLocked(sub.have(id))
	l.mu.Unlock()
	l.nudge()
	l.x.tellFetch(id, peerClaims{l, true})
	return nil
}

func (l *link) unwant(id cid.Cid) {
	l.mu.Lock()
	delete(l.subs, id)
	l.mu.Unlock()
	l.x.tellFetch(id, peerClaims{l, false})
}

// openSubs returns the subscriptions that may have missed something.
func (l *link) openSubs() map[cid.Cid]*subscription {
	l.mu.Lock()
	defer l.mu.Unlock()
	open := maps.Clone(l.subs)
	maps.DeleteFunc(open, func(_ cid.Cid, s *subscription) bool { return s.complete() })
	return open
}

// refresh brings a subscription up to what the store holds. chunks is nil while the manifest is unknown.
func (l *link) refresh(sub *subscription, chunks []cid.Cid) {
	if chunks == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if sub.chunks == nil {
		sub.chunks, sub.told = chunks, newBitmap(len(chunks))
	}
	sub.scan(l.x.store)
	if len(sub.fresh) > 0 {
		l.nudge()
	}
}

// announce passes on that chunk i of a manifest is here now.
func (l *link) announce(id cid.Cid, i int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sub := l.subs[id]; sub != nil {
		sub.add(i)
		l.nudge()
	}
}

// wants tells whether the peer is fetching a manifest.
func (l *link) wants(id cid.Cid) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.subs[id] != nil
}

// learn tells a subscription, if there is one, which chunks a manifest has.
func (l *link) learn(id cid.Cid, chunks []cid.Cid) {
	l.mu.Lock()
	sub := l.subs[id]
	l.mu.Unlock()
	if sub != nil {
		l.refresh(sub, chunks)
	}
}
