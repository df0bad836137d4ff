package node

import (
	"context"
	"fmt"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// How long a trainer waits at its start for a peer to tell what was published before, so that an empty data directory or
// a clock that was set back hides no higher epoch.
const (
	askFor   = 3 * time.Second
	askLong  = 10 * time.Second // while connections are being made
	askEvery = 50 * time.Millisecond
	// askMore is how long others have to tell more than the first peer, which may be as new as this trainer.
	askMore = time.Second
)

// askFirst returns when a peer has told what it knows of the run, when there is nobody to ask, or when that took too
// long.
func (t *trainer) askFirst(ctx context.Context) {
	begun := time.Now()
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		waited := time.Since(begun)
		hoped, dialling := t.mesh.Seeking()
		switch {
		case !hoped:
			return
		case waited > askLong, waited > askFor && !dialling:
			t.log.Warn().Dur("waited", waited).Msg("no peer has told what was published before: going on from what is known here")
			return
		}
		select {
		case <-t.mesh.Answered():
			return
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// open asks peers first and then opens an epoch of this start.
func (t *trainer) open(ctx context.Context) (mesh.Head, bool) {
	t.askFirst(ctx)
	t.signing.Lock()
	defer t.signing.Unlock()
	head, catalogue, _, ok := t.mesh.Latest()
	t.lineage.epoch = t.lineage.next(t.mesh.Clock(), newest(head, catalogue), true)
	return head, ok
}

// offerBase announces the base as version 0 once a peer has told that it knows of no version, which others may: it moves
// nobody who does.
func (t *trainer) offerBase(ctx context.Context) {
	if t.slots.baseRoot().IsZero() {
		return
	}
	select {
	case <-t.mesh.Answered():
	case <-ctx.Done():
		return
	}
	select {
	case <-time.After(askMore):
	case <-ctx.Done():
		return
	}
	if t.publishing.enter(ctx) != nil {
		return
	}
	defer t.publishing.leave()
	if _, _, _, ok := t.mesh.Latest(); ok {
		return
	}
	if err := t.publishBase(ctx); err != nil && ctx.Err() == nil { // no reason to end: a clock, say, can be put right
		t.log.Error().Err(err).Msg("the base is not announced; the next publish tries again")
		t.board.fail(err)
	}
}

// newest returns the newest epoch that is known, whether from the head or from the catalogue: the two arrive apart.
func newest(h mesh.Head, c mesh.Catalogue) mesh.Version {
	return mesh.Version{Epoch: max(h.Version.Epoch, c.Epoch)}
}

// nextEpoch returns the epoch of the next version, and an error when there is to be none.
func (t *trainer) nextEpoch(head mesh.Head, catalogue mesh.Catalogue, fresh bool) (uint64, error) {
	t.signing.Lock()
	defer t.signing.Unlock()
	if err := t.lineage.admit(fresh); err != nil {
		return 0, err
	}
	return t.lineage.next(t.mesh.Clock(), newest(head, catalogue), fresh), nil
}

// sign signs and sends head and catalogue, unless another trainer has got in the way meanwhile. Work tells whether the
// head brings weights, and is not just the base.
func (t *trainer) sign(ctx context.Context, head mesh.Head, catalogue mesh.Catalogue, work bool) error {
	t.signing.Lock() // so that watch never takes this node's own head for another's
	defer t.signing.Unlock()
	if err := t.lineage.admit(true); err != nil {
		return err
	}
	if err := t.mesh.Publish(ctx, head, catalogue, t.key); err != nil {
		return fmt.Errorf("announce version %s: %w", head.Version, err)
	}
	if head.Version == mesh.BaseVersion(head.Root) {
		t.lineage.base = head.Version
	}
	t.lineage.sign(head.Version, work)
	return nil
}

// watch attends to what other trainers publish until ctx ends.
func (t *trainer) watch(ctx context.Context) {
	for {
		t.attend(ctx)
		select {
		case <-ctx.Done():
			return
		case <-t.mesh.Updates():
		}
	}
}

// attend takes in the newest version known, which may be another trainer's.
func (t *trainer) attend(ctx context.Context) {
	t.signing.Lock()
	defer t.signing.Unlock()
	head, catalogue, signer, _ := t.mesh.Latest()
	_, frozen := t.mesh.Frozen()
	had := t.lineage.passed != nil
	t.noteNewest(head)
	switch t.lineage.hear(head.Version, signer, frozen) {
	case dutyTakeOver:
		t.takeOver(ctx, head, catalogue)
	case dutyStop:
		why := t.lineage.stopped
		t.log.Error().Err(why).Stringer("heard", head.Version).Str("hint", why.Hint).Msg("this trainer has stopped")
		t.board.fail(fmt.Errorf("%w; %s", why, why.Hint))
	case dutyNone:
		if !had && t.lineage.passed != nil {
			t.log.Warn().Stringer("publisher", signer).Stringer("version", head.Version).
				Msg("another publisher has got ahead; restart this node or publish with --new-epoch to take over")
		}
	}
}

// noteNewest shows the newest version that was heard of, also where somebody else brought it here.
func (t *trainer) noteNewest(head mesh.Head) {
	var shown *api.VersionInfo
	t.board.look(func(b *board) { shown = b.latest })
	if head.Root.IsZero() || shown != nil && head.Version.Compare(versionOf(*shown)) <= 0 {
		return
	}
	v := versionInfo(head, nil)
	t.board.update(func(b *board) { b.latest = &v })
}

// takeOver announces what was heard again in the epoch that lineage has opened, so that whoever else signs with this key
// hears of it. Nothing moves: it is the same state, and what leads there stays on offer.
func (t *trainer) takeOver(ctx context.Context, head mesh.Head, catalogue mesh.Catalogue) {
	was := head.Version
	head.Version.Epoch, head.Created = t.lineage.epoch, t.now().UnixMilli()
	if err := t.mesh.Publish(ctx, head, catalogue, t.key); err != nil {
		t.log.Warn().Err(err).Stringer("heard", was).Msg("a higher epoch of this key was heard; the next publish goes above it")
		return
	}
	t.lineage.sign(head.Version, false)
	v := versionInfo(head, nil)
	t.board.update(func(b *board) { b.latest = &v })
	t.log.Warn().Stringer("heard", was).Stringer("now", head.Version).
		Msg("a higher epoch of this key was heard: taking over from there; if another trainer with this key still runs, it stops")
}
