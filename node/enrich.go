package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

// terms are what a trainer offers, beside the deltas.
type terms struct {
	limits  limits
	slack   float64
	anchors string // always, never, or auto: for those that start from nothing
}

func termsOf(c RunOptions) terms {
	bytes, _ := c.keepLimit("") // it is valid
	return terms{
		limits:  limits{versions: c.Keep, reverse: c.Reverse, bytes: bytes},
		slack:   c.AnchorSlack,
		anchors: c.Anchors,
	}
}

// learnBase finds out what the base checkpoint can be a base of.
func (t *trainer) learnBase() error {
	root := t.slots.baseRoot()
	if root.IsZero() {
		return nil
	}
	c, err := t.slots.read(t.slots.base)
	if err != nil {
		return fmt.Errorf("base checkpoint: %w", err)
	}
	defer c.Close()
	t.baseSchema = c.Schema().ID()
	return nil
}

// pledge says what must stay on offer with head: the ways there from the base, when deltas can lead from it, and from
// nothing. Anchors that nobody asked for cost a model's size on disk and the time to code it, so by default they are
// kept up where no base serves newcomers, or once there was one: then somebody did ask. Those who have the version before
// keep a way, too.
func (t *trainer) pledge(head mesh.Head, edges []mesh.Edge, before delta.Root) pledge {
	g := pledge{head: head.Root, newest: head.Edge, before: before, base: t.slots.baseRoot()}
	based := !g.base.IsZero() && t.baseSchema.Equals(head.Schema)
	if based {
		g.starts = append(g.starts, g.base)
	}
	asked := slices.ContainsFunc(edges, func(e mesh.Edge) bool { return e.Base.IsZero() })
	if t.terms.anchors == anchorsAlways || t.terms.anchors == anchorsAuto && (asked || !based) || fullCopy(edges, head.Root) {
		g.starts = append(g.starts, delta.Root{})
	}
	return g
}

// fullCopy tells whether there is an anchor to the newest state: whatever the terms, it is there because a user asked for
// it or nothing else leads on, and stays while that state is the newest.
func fullCopy(edges []mesh.Edge, newest delta.Root) bool {
	return slices.ContainsFunc(edges, func(e mesh.Edge) bool { return e.Base.IsZero() && e.Target == newest })
}

// before returns the state of the version before the newest, zero when that is not known.
func before(head mesh.Head, c mesh.Catalogue) delta.Root {
	for _, v := range slices.Backward(c.Versions) {
		if v.Version.Compare(head.Version) < 0 {
			return v.Root
		}
	}
	return delta.Root{}
}

// shelve makes room for what is on offer with head, and clears away the rest.
func (t *trainer) shelve(head mesh.Head, edges []mesh.Edge) {
	edges = offered(head, mesh.Catalogue{Edges: edges})
	t.board.offer(edges, t.slots.baseRoot())
	t.shelf.offer(t.runName, head.Version, edges)
	if _, err := t.shelf.sweep(); err != nil {
		t.log.Warn().Err(err).Msg("old blocks could not be removed")
	}
}

func (t *trainer) noteExcess(excess bool) {
	text := ""
	if excess {
		text = "what newcomers need to reach the newest version takes more than keep_bytes, or than one catalogue holds: " +
			"it stays as far as possible; allow more, or set anchors: never"
	}
	if t.board.note("excess", text) && excess {
		t.log.Warn().Msg(text)
	}
}

// enrichLoop adds to the offer whatever is due after each publish, until ctx ends.
func (t *trainer) enrichLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.background.news:
		}
		if t.slots.isHarmed() { // as coding a version found
			t.mendAll(ctx)
		}
		t.background.do(ctx, func(work context.Context) {
			err := t.enrich(work, ctx)
			if errors.Is(err, errSlotLost) && t.slots.isHarmed() {
				t.background.wake() // to go on without what was lost
			}
			if err != nil && work.Err() == nil {
				t.log.Warn().Err(err).Msg("the offer lacks something that newcomers or hosts that go back could use; trying again after the next publish")
			}
		})
	}
}

// enrich codes what is due, one after the other. Work ends when a publish wants the processor; life is the node's.
func (t *trainer) enrich(work, life context.Context) error {
	for work.Err() == nil {
		more, err := t.addDue(work, life)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

func (t *trainer) addDue(work, life context.Context) (more bool, err error) {
	d := t.shelf.draft()
	defer d.close()
	job, ok, err := t.nextJob(work)
	if err != nil || !ok {
		return false, err
	}
	defer job.close()
	defer t.giveUp(d) // nothing to do for what is on offer by then
	e, err := t.writeOffer(work, job.wish, job.old, job.new, d)
	if err != nil {
		return false, err
	}
	t.tried[job.wish] = true
	return true, t.add(life, e)
}

// giveUp clears away what was coded and not put on offer, as when there is no room for it. The next publish may be far.
func (t *trainer) giveUp(d *draft) {
	d.close()
	if _, err := t.shelf.sweep(); err != nil {
		t.log.Warn().Err(err).Msg("blocks that are not on offer could not be removed")
	}
}

// nextJob opens the states of what is due. A publish meanwhile may give the slots to other states: what is open can be
// read on all the same, but nothing is opened then.
func (t *trainer) nextJob(ctx context.Context) (j job, ok bool, err error) {
	if err := t.publishing.enter(ctx); err != nil {
		return job{}, false, err
	}
	defer t.publishing.leave()
	head, catalogue, _, known := t.mesh.Latest()
	if !known || !t.signed(head.Version) || ctx.Err() != nil {
		return job{}, false, nil
	}
	if t.triedFor != head.Version {
		t.tried, t.triedFor = make(map[wish]bool), head.Version
	}
	edges, _ := t.library.whole(catalogue.Edges)
	g := t.pledge(head, edges, before(head, catalogue))
	edges, _ = retain(edges, t.terms.limits, g)
	j.wish, ok = due(offering{
		pledge: g, edges: edges, held: t.slots.held(),
		reverse: t.terms.limits.reverse, room: g.room(edges, t.terms.limits.bytes), slack: t.terms.slack, tried: t.tried,
	})
	if !ok {
		return job{}, false, nil
	}
	if err := t.openJob(ctx, &j); err != nil {
		j.close()
		return job{}, false, err
	}
	return j, true, nil
}

// signed tells whether this process signed v. What another offers is not ours to change, nor what was on offer before
// this start: another trainer with this key may be at work there.
func (t *trainer) signed(v mesh.Version) bool {
	t.signing.Lock()
	defer t.signing.Unlock()
	return t.lineage.signed == v || t.lineage.base == v
}

// relieve adds shortcuts for ways that have become too long, which takes as long as there was no time for them in the
// background. Where that fails the version is published all the same.
func (t *trainer) relieve(ctx context.Context, edges []mesh.Edge, g pledge, d *draft) []mesh.Edge {
	for _, start := range g.crowding(edges) {
		e, err := t.codeWish(ctx, wish{start, g.head}, d)
		if err != nil {
			t.log.Warn().Err(err).Str("from", start.Short()).Msg("no shortcut could be made, and the way of newcomers has very many edges; trying again at the next publish")
			continue
		}
		edges = append(edges, e)
	}
	return edges
}

// add puts an edge on offer with the newest head, which may have changed meanwhile, unless the limits have no room for it.
func (t *trainer) add(ctx context.Context, e mesh.Edge) error {
	if err := t.publishing.enter(ctx); err != nil {
		return err
	}
	defer t.publishing.leave()
	head, catalogue, _, _ := t.mesh.Latest()
	if !t.signed(head.Version) {
		return nil
	}
	edges, _ := t.library.whole(catalogue.Edges)
	edges = append(edges, e)
	kept, excess := retain(edges, t.terms.limits, t.pledge(head, edges, before(head, catalogue)))
	if !slices.Contains(kept, e) {
		return nil
	}
	if err := t.send(ctx, head, kept, false); err != nil {
		return err
	}
	t.noteExcess(excess)
	t.shelve(head, kept)
	t.log.Info().Str("from", e.Base.Short()).Str("to", e.Target.Short()).Uint64("coded_bytes", e.Coded).Msg("another edge is on offer")
	return nil
}
