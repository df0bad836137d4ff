package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// pull waits until what r asks for is served.
func (b *board) pull(ctx context.Context, r api.PullRequest) (result api.PullResult, err error) {
	var refused error
	err = b.waitFor(ctx, func(b *board) bool {
		var ready bool
		ready, refused = b.answer(r)
		if ready {
			result = api.PullResult{Version: *b.served, Path: b.path, Pin: copyOf(b.pin)}
		}
		return ready || refused != nil
	})
	if refused != nil {
		return api.PullResult{}, refused
	}
	if err != nil {
		err = fmt.Errorf("%s is not ready here (%s): %w", wanted(r), b.news(), err)
		if b.hasFailed() && errors.Is(err, context.DeadlineExceeded) {
			err = api.NewError(http.StatusGatewayTimeout, err, "to wait longer helps only once that is seen to; sparsecast status and the node's log tell more")
		}
		return result, err
	}
	return result, nil
}

// answer tells whether what is served is what r asks for, or that it never will be.
func (b *board) answer(r api.PullRequest) (ready bool, refused error) {
	if r.Exact {
		return b.answerExact(r)
	}
	if r.Number == nil && r.Epoch == nil && b.judged {
		return b.served != nil && (b.goal.do == stay || b.goal.do == collect), nil
	}
	if b.latest == nil {
		return false, nil // as at a start, when it is not known yet of which epoch a number is
	}
	least := b.asked(r)
	if b.served != nil && versionOf(*b.served).Compare(least) >= 0 {
		return true, nil
	}
	if p := b.pin; p != nil && (mesh.Version{Epoch: cmp.Or(p.Epoch, least.Epoch), Number: p.Number}).Compare(least) < 0 {
		return false, api.NewError(http.StatusConflict, fmt.Errorf("%s will not be served: this node is pinned to %s", wanted(r), pinName(p)),
			"let it follow the newest again with sparsecast unpin, or take what is pinned: sparsecast pull without a number")
	}
	return false, nil
}

func (b *board) answerExact(r api.PullRequest) (ready bool, refused error) {
	p := b.pin
	if p == nil || p.Number != *r.Number || r.Epoch != nil && p.Epoch != *r.Epoch {
		return false, api.NewError(http.StatusConflict, fmt.Errorf("the pin to %d was changed while this waited for it", *r.Number),
			"one node serves one version at a time: agree on it, then pull again")
	}
	return b.served != nil && !p.Root.IsZero() && b.servedRoot() == pinnedRoot(p), nil
}

// asked returns the least version that r is content with. A step of an older epoch is another state than the same step
// of this one: trainers go back.
func (b *board) asked(r api.PullRequest) mesh.Version {
	var v mesh.Version
	if b.latest != nil {
		v = versionOf(*b.latest)
	}
	if r.Number != nil {
		v.Number = *r.Number
	}
	if r.Epoch != nil {
		v.Epoch = *r.Epoch
	}
	return v
}

func wanted(r api.PullRequest) string {
	switch {
	case r.Number == nil:
		return "the newest version"
	case r.Exact:
		return fmt.Sprintf("version %d", *r.Number)
	default:
		return fmt.Sprintf("version %d or a newer one", *r.Number)
	}
}

// hasFailed tells whether the node stands still at an error.
func (b *board) hasFailed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state == api.StateError
}

// news says in a few words how far the node is.
func (b *board) news() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	served, latest := "nothing served", "no version heard of"
	if b.served != nil {
		served = fmt.Sprintf("%d served", b.served.Number)
	}
	if b.latest != nil {
		latest = fmt.Sprintf("%d the newest heard of", b.latest.Number)
	}
	switch {
	case b.goal.why != "" && b.latest != nil:
		latest += "; " + b.goal.why
	case b.state == api.StateError:
		latest += "; " + b.problem
	}
	return served + ", " + latest
}

func (r *rollout) pull(ctx context.Context, req api.PullRequest) (api.PullResult, error) {
	switch {
	case req.Exact:
		if _, err := r.pin(ctx, api.VersionRequest{Number: req.Number, Epoch: req.Epoch}); err != nil {
			return api.PullResult{}, err
		}
	case req.Number != nil:
		r.expect(&req, true)
		defer r.expect(&req, false)
	}
	for {
		changed := r.board.next()
		res, err := r.board.pull(ctx, req)
		if err != nil || r.slots.present(res.Path) {
			return res, err
		}
		r.nudge() // what is served is lost: it is not told to anybody, and brought up anew
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// expect notes that somebody waits for what req asks for, which outweighs max_lag, or does no more.
func (r *rollout) expect(req *api.PullRequest, waits bool) {
	r.board.update(func(b *board) {
		if waits {
			b.waiters[req] = struct{}{}
		} else {
			delete(b.waiters, req)
		}
	})
	r.nudge()
}
