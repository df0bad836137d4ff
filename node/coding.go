package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// startFrom returns the state to code the next version against: the one published last or, where that is not here, the
// newest before it that is here and known to the run.
func (t *trainer) startFrom(last delta.Root, catalogue mesh.Catalogue) delta.Root {
	if _, here := t.slots.find(last); here {
		return last
	}
	for _, v := range slices.Backward(catalogue.Versions) {
		if _, here := t.slots.find(v.Root); here {
			t.log.Warn().Stringer("from", v.Version).Msg("the version published last is not on this disk, going on from an older one")
			return v.Root
		}
	}
	return last
}

// code finds what changed from the state published last to c, and leaves a copy of c in the idle slot. The edge is an
// anchor where there is no such state or it has another schema; diff tells how that differs.
func (t *trainer) code(ctx context.Context, c *states, published delta.Root, d *draft, full bool) (m *delta.Manifest, diff unlike, err error) {
	old, from, diff, err := t.published(ctx, published, c.Schema(), full)
	if err != nil {
		return nil, "", err
	}
	m, err = t.codeFrom(ctx, old, from, c, published, d)
	return m, diff, err
}

// codeFrom is code against a copy of the state published last, in slot from; old is nil for an anchor. It closes old.
func (t *trainer) codeFrom(ctx context.Context, old *states, from slot, c *states, published delta.Root, d *draft) (*delta.Manifest, error) {
	var state delta.State
	if old != nil {
		defer old.Close()
		state = old
	}
	to := t.slots.idle()
	next, err := t.slots.begin(to, c.Schema(), published)
	if err != nil {
		return nil, err
	}
	defer next.Abort() // nothing to do after a commit
	defer t.slots.work()()
	m, sum, err := t.writeEdge(ctx, state, c, next, d)
	if changed := c.Changed(); changed != nil { // also where err came of it: this one says what to do
		return nil, api.NewError(http.StatusConflict, changed, "publish again when the trainer has finished writing")
	}
	if err != nil {
		return nil, err
	}
	if state != nil && m.Base != published {
		return nil, errors.Join(fmt.Errorf("the copy of the last version in slot %s is damaged: its root is %s, not %s; publish again, "+
			"which sends a full copy unless this one can be repaired", from.name, m.Base.Short(), published.Short()), t.doubt(ctx, from))
	}
	if m.Base == m.Target {
		return m, nil // the copy at hand is as good
	}
	return m, t.slots.commit(to, next, m.Target, sum.Digests)
}

// published opens the state published last, if it can serve as a base for schema, and else tells how the schemas differ.
// Full allows states to go away.
func (t *trainer) published(ctx context.Context, root delta.Root, schema *delta.Schema, full bool) (*states, slot, unlike, error) {
	sl, c, err := t.slots.open(ctx, root)
	if errors.Is(err, errSlotLost) {
		t.log.Warn().Str("root", root.Short()).Msg("the version published last is not on this disk, sending a full copy")
		return nil, slot{}, "", nil
	}
	if err != nil || c == nil {
		return nil, slot{}, "", err
	}
	if gone := statesGone(c.Schema(), schema); len(gone) > 0 && !full {
		return nil, slot{}, "", errors.Join(stateMissing(c.Schema(), gone), c.Close())
	}
	if diff := compareSchemas(c.Schema(), schema); diff != "" {
		return nil, sl, diff, c.Close()
	}
	return c, sl, "", nil
}

// writeEdge codes the edge from old (nil: an anchor) to c. Its chunks stay for as long as d does.
func (t *trainer) writeEdge(ctx context.Context, old delta.State, c *states, copied delta.Sink, d *draft) (*delta.Manifest, delta.Summary, error) {
	spool, err := t.dir.CreateSpool()
	if err != nil {
		return nil, delta.Summary{}, err
	}
	defer spool.Close()
	opt := delta.EncodeOptions{Copy: copied}
	if old == nil {
		a, err := t.attach(c)
		defer a.close()
		if err != nil {
			return nil, delta.Summary{}, err
		}
		opt.Sidecars = a.list
	}
	return delta.WriteEdge(ctx, spool, old, c, opt, d.put)
}

// job is a wish with the states it takes.
type job struct {
	wish
	old delta.State // nil for an anchor
	new *states

	closers []func() error
}

func (j *job) close() {
	for _, f := range j.closers {
		_ = f() // of what was only read
	}
}

func (t *trainer) openJob(ctx context.Context, j *job) error {
	_, c, err := t.slots.open(ctx, j.target)
	if err != nil {
		return err
	}
	j.new, j.closers = c, append(j.closers, c.Close)
	_, old, err := t.slots.open(ctx, j.base)
	if err != nil || old == nil {
		return err
	}
	j.old, j.closers = old, append(j.closers, old.Close)
	return nil
}

// codeWish codes an edge between states that are in slots, or from nothing.
func (t *trainer) codeWish(ctx context.Context, w wish, d *draft) (mesh.Edge, error) {
	j := job{wish: w}
	defer j.close()
	if err := t.openJob(ctx, &j); err != nil {
		return mesh.Edge{}, err
	}
	return t.writeOffer(ctx, w, j.old, j.new, d)
}

// writeOffer codes an edge between states that are known by their roots.
func (t *trainer) writeOffer(ctx context.Context, w wish, old delta.State, c *states, d *draft) (mesh.Edge, error) {
	m, _, err := t.writeEdge(ctx, old, c, nil, d)
	if err != nil {
		return mesh.Edge{}, err
	}
	if m.Base != w.base || m.Target != w.target {
		return mesh.Edge{}, errors.Join(fmt.Errorf("coded an edge from %s to %s, want %s to %s: %w",
			m.Base.Short(), m.Target.Short(), w.base.Short(), w.target.Short(), errSlotLost), t.doubtAll(ctx, w.base, w.target))
	}
	return d.putEdge(m, c.Schema())
}

// doubtAll has the slots looked at that are believed to hold these states, of which one turned out to hold another.
func (t *trainer) doubtAll(ctx context.Context, roots ...delta.Root) (err error) {
	for _, root := range roots {
		if sl, ok := t.slots.find(root); ok {
			err = errors.Join(err, t.doubt(ctx, sl))
		}
	}
	return err
}

// doubt has a slot looked at. If it is damaged, mendAll sees to it.
func (t *trainer) doubt(ctx context.Context, sl slot) error {
	if err := t.slots.examine(ctx, sl); !errors.Is(err, errSlotLost) {
		return err
	}
	return nil
}
