package mesh

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
)

const (
	blockHedge   = time.Second            // silence after which the next peer is asked, too
	blockFirst   = 250 * time.Millisecond // before all are asked again, at first
	blockLongest = 2 * time.Second        // and at most
	blockRound   = 5 * time.Second        // for answers once all were asked; then those that have it by now are found

	// A block that is promised or on its way for longer than blockGrace, and what its size takes at blockPace bytes a
	// second, is not to be had: somebody may say so for ever.
	blockGrace = 15 * time.Second
	blockPace  = 64 << 10
)

// Block returns the block that id names: from the store, or from the first peer that has it, after which it is in
// the store, too. A block above limit bytes is refused before it is read. It goes on asking until ctx ends.
func (x *Exchange) Block(ctx context.Context, id cid.Cid, limit int) ([]byte, error) {
	if _, err := delta.Digest(id); err != nil {
		return nil, fmt.Errorf("block: %w", err)
	}
	limit = min(limit, delta.MaxBlock)
	defer x.lacks.clear(id)
	despair := time.Now().Add(blockGrace + time.Duration(limit)*time.Second/blockPace)
	for wait := blockFirst; ; wait = min(2*wait, blockLongest) {
		data, err := x.store.Get(id)
		switch {
		case err == nil && len(data) > limit:
			return nil, fmt.Errorf("block %s: %d bytes, at most %d", id, len(data), limit)
		case err == nil:
			return data, nil
		case !errors.Is(err, ErrNotFound):
			return nil, fmt.Errorf("block %s: %w", id, err)
		}
		met := x.nextMeeting()
		switch err := x.askAll(ctx, id, limit); {
		case err == nil:
			continue // it is in the store now
		case errors.Is(err, errStore):
			return nil, fmt.Errorf("block %s: %w", id, err)
		case errors.Is(err, errAbsent), time.Now().After(despair):
			x.lacks.note(id, id)
		default:
			x.lacks.clear(id)
		}
		again := time.NewTimer(wait)
		select {
		case <-met:
		case <-again.C:
		case <-ctx.Done():
		}
		again.Stop()
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("block %s: no peer has it: %w", id, err)
		}
	}
}

// nextMeeting is closed when another peer says hello.
func (x *Exchange) nextMeeting() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.met
}

// askAll asks one peer after the other, and the next one, too, when one stays silent. It returns nil when the block
// is in the store, and otherwise what went wrong: errAbsent only when nobody who is connected has it. Whoever then still
// owes an answer may give it to the next round: asking again joins the request that is under way.
func (x *Exchange) askAll(ctx context.Context, id cid.Cid, limit int) error {
	peers := x.byDistance()
	answers := make(chan error, len(peers)) // never blocks a lane
	why := errAbsent
	var end <-chan time.Time
	for open := 0; len(peers) > 0 || open > 0; {
		var hedge <-chan time.Time
		if len(peers) > 0 {
			err := peers[0].ask(&request{
				block: id, size: limit, progress: func() {}, done: func(err error) { answers <- err },
			})
			peers = peers[1:]
			if err != nil {
				why = likelier(why, err)
				continue
			}
			open++
			hedge = time.After(blockHedge)
		}
		if len(peers) == 0 && end == nil {
			end = time.After(blockRound)
		}
		select {
		case err := <-answers:
			if open--; err == nil || errors.Is(err, errStore) {
				return err
			}
			why = likelier(why, err)
		case <-hedge:
		case <-end:
			return errBusy // somebody may have it yet
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return why
}

// likelier returns the one of two errors that leaves more hope than errAbsent.
func likelier(a, b error) error {
	if errors.Is(a, errAbsent) {
		return b
	}
	return a
}

// byDistance returns the peers to ask: of this cluster first, the trainer last, else in random order.
func (x *Exchange) byDistance() []*link {
	peers := x.friends()
	rand.Shuffle(len(peers), func(i, j int) { peers[i], peers[j] = peers[j], peers[i] })
	far := func(l *link) int {
		h, d := l.heardHello(), 0
		if h.Cluster != x.self.Cluster {
			d += 2
		}
		if h.Role == RoleTrainer {
			d++
		}
		return d
	}
	slices.SortStableFunc(peers, func(a, b *link) int { return far(a) - far(b) })
	return peers
}
