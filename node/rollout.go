package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// rollout follows the run: it brings the version that decide aims at, usually the newest, up in the idle slot while the
// other one is served, checks its root and switches. Whatever fails, the served slot stays as it is.
type rollout struct {
	home
	slots   *slots // opened by run
	mesh    *mesh.Run
	runName string
	library library
	shelf   *shelf
	board   *board
	ways    *ways // nil unless there is one slot, and ways back are kept
	log     zerolog.Logger
	served  api.VersionInfo // Root is zero while nothing is served

	past     bool // something was served, now or before this start
	disowned bool // the base is not the run's, or older than what was served, so that current does not lead there

	noting sync.Mutex    // one note of what this node was told at a time
	told   chan struct{} // holds a token after every such note

	opened chan struct{} // closed when slots is set
	pace   uint64        // of checks in the background, bytes a second

	unfinished     unfinished
	unfinishedMemo memo[unfinishedKept]
	patience       time.Duration // how long a download may stand still
	avoid          avoidance
	meeting        <-chan struct{} // closed when another peer has come
}

// Pauses between attempts at an update that fails.
const (
	firstPause = time.Second
	longPause  = 30 * time.Second
)

// run follows until ctx ends.
func (r *rollout) run(ctx context.Context) error {
	r.recall()
	var err error
	if r.slots, err = openSlots(ctx, r.home, r.log); err != nil {
		return err
	}
	if err := r.resume(); err != nil {
		return err
	}
	r.slots.ways = r.ways
	close(r.opened)
	var scrubbing sync.WaitGroup
	defer scrubbing.Wait()
	scrubbing.Go(func() { lookout{r.slots, r.nudge, &room{board: r.board, log: r.log}}.run(ctx) })
	scrubbing.Go(func() { scrubber{r.slots, r.pace, r.nudge, r.board, r.log}.run(ctx) })
	r.meeting = r.mesh.Meeting()
	pause := firstPause
	for {
		err := r.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		retry := (<-chan time.Time)(nil)
		if err != nil {
			if errors.Is(err, errFetchAnew) {
				pause = firstPause // it helps
			}
			r.log.Error().Err(err).Stringer("retry_in", pause).Msg("update failed, the served version stays")
			r.board.fail(err)
			retry = time.After(pause)
			pause = min(2*pause, longPause)
		} else {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
			return nil
		case <-retry:
		case <-r.mesh.Updates():
			r.avoid.news(time.Now())
		case <-r.told:
		}
	}
}

// nudge makes the node look anew at what it was told.
func (r *rollout) nudge() {
	select {
	case r.told <- struct{}{}:
	default: // a token is waiting already
	}
}

// resume serves again what was served before a restart, or, where nothing ever was, leads to the base checkpoint until
// something newer is here. Only then it says so: who hears that the node waits may load what lies under current.
func (r *rollout) resume() error {
	v, ok, err := servedNote.load(r.dir)
	last := versionOf(v)
	if err != nil {
		r.log.Warn().Err(err).Msg("what was served is not known, finding out from the slots")
		head, _, _, _ := r.mesh.Latest()
		last = head.Version // nothing newer
	}
	r.board.update(func(b *board) { b.last = last })
	if ok && r.plausible(v) {
		if sl, ok := r.slots.find(v.Root); ok {
			return r.show(sl, v)
		}
		r.log.Warn().Uint64("number", v.Number).Msg("the served version is no longer in a slot, fetching anew")
	}
	r.past = last != mesh.Version{}
	head, catalogue, _, _ := r.mesh.Latest()
	r.disowned = r.past || foreign(strayBase(r.slots.base.from, r.slots.baseRoot(), head, catalogue), catalogue)
	if r.disowned || r.slots.baseRoot().IsZero() {
		err = r.slots.unpoint()
	} else {
		err = r.slots.point(r.slots.base)
	}
	if err == nil {
		r.board.setState(api.StateWaiting)
	}
	return err
}

// plausible tells whether v can have been served: nothing newer than the newest head, which was durable before. Another
// root under the same version can, when two publishers chose it.
func (r *rollout) plausible(v api.VersionInfo) bool {
	head, _, _, ok := r.mesh.Latest()
	return ok && versionOf(v).Compare(head.Version) <= 0
}

// follow brings this node to where it should be, and returns when it is there or can get no further.
func (r *rollout) follow(ctx context.Context) error {
	for {
		if err := r.mendAll(ctx); err != nil {
			return err
		}
		r.ways.review()
		g, head, catalogue := r.judge()
		done, err := r.step(ctx, g, head, catalogue)
		if err != nil && !errors.Is(err, errReplan) && !errors.Is(err, errSlotLost) {
			return fmt.Errorf("version %s: %w", g.to.Version, err)
		}
		if err == nil && done && !r.slots.isHarmed() {
			return nil
		}
	}
}

// step does what g says, and tells whether nothing is left to do. What has become of no use goes in every round: on a
// link slower than the publishes the round in which nothing is left to do may never come.
func (r *rollout) step(ctx context.Context, g goal, head mesh.Head, catalogue mesh.Catalogue) (done bool, err error) {
	done, err = r.act(ctx, g, head, catalogue)
	if ctx.Err() == nil {
		r.tidy(err == nil)
	}
	return done, err
}

// act is step that clears nothing away.
func (r *rollout) act(ctx context.Context, g goal, head mesh.Head, catalogue mesh.Catalogue) (done bool, err error) {
	edges := r.edges(head, catalogue)
	switch g.do {
	case move:
		return false, r.update(ctx, aim(head, g.to), edges)
	case collect:
		if err := r.collect(ctx, aim(head, g.to), edges); err != nil {
			return false, err
		}
		if next, _, _ := r.judge(); next.do != collect || next.to != g.to {
			return false, nil
		}
		r.board.setState(api.StateReady)
	case await:
		r.board.fail(errors.New(g.why))
	case expect:
		r.board.setState(api.StateWaiting)
	case stay:
		r.board.setState(api.StateReady)
	}
	if g.do != collect {
		r.unfinished.clear()
		r.noteUnfinished()
		r.board.note("pace", "")
	}
	return true, nil
}

// edges returns the edges that lead somewhere: those on offer, the ways back that are kept here, and those of which a
// download has brought something here.
func (r *rollout) edges(head mesh.Head, catalogue mesh.Catalogue) []mesh.Edge {
	return r.unfinished.among(r.ways.among(offered(head, catalogue)))
}

// left says what is still to come of edges of which something is here.
func (r *rollout) left() remainder {
	left := r.unfinished.left()
	for _, way := range r.ways.all() {
		left[way.Edge] = 0
	}
	return left
}

// aim returns the head of version v: the newest one, or what is known of that of another version.
func aim(newest mesh.Head, v mesh.VersionRoot) mesh.Head {
	if newest.Version == v.Version && newest.Root == v.Root { // one version may have two roots
		return newest
	}
	return mesh.Head{Run: newest.Run, Version: v.Version, Root: v.Root}
}

// judge looks at what is known and decides what to do.
func (r *rollout) judge() (g goal, head mesh.Head, catalogue mesh.Catalogue) {
	g, head, catalogue = r.look()
	r.noteOrigin(head, catalogue)
	r.settlePin()
	return g, head, catalogue
}

// look is judge that writes nothing down.
func (r *rollout) look() (g goal, head mesh.Head, catalogue mesh.Catalogue) {
	head, catalogue, _, _ = r.mesh.Latest()
	held, base := r.slots.held(), r.slots.baseRoot()
	r.board.update(func(b *board) {
		b.learn(head, catalogue, held)
		b.ways, b.begun = r.ways.all(), slices.Clone(r.unfinished.list)
		b.offers = census(b.edges, base)
		g = b.judge()
	})
	return g, head, catalogue
}

// tidy removes the blocks that nobody needs any more. After a round that failed the ways back stay: what the slots hold is
// not settled then.
func (r *rollout) tidy(settled bool) {
	head, catalogue, _, _ := r.mesh.Latest()
	if head.Root.IsZero() {
		return // to know of no offer is no reason to remove all
	}
	edges := offered(head, catalogue)
	if settled && !r.served.Root.IsZero() { // or it is not known yet from where there may be a way
		r.ways.tidy(r.slots.held(), r.slots.baseRoot(), edges)
	}
	r.shelf.offer(r.runName, head.Version, r.ways.among(edges))
	n, err := r.shelf.sweep()
	if err != nil {
		r.log.Warn().Err(err).Msg("old blocks could not be removed")
	} else if n > 0 {
		r.log.Debug().Int("blocks", n).Msg("removed old blocks")
	}
}
