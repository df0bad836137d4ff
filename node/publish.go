package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// publish makes the checkpoints that r names the newest version.
func (t *trainer) publish(ctx context.Context, r api.PublishRequest) (api.PublishResult, error) {
	checkpoints := pathsOf(r)
	if err := checkpoints.check(); err != nil && !wantsOnlyFull(r) {
		return api.PublishResult{}, api.NewError(http.StatusBadRequest, fmt.Errorf("nothing published: %w", err),
			"name states by letters, digits, dots, dashes and underscores, as policy=/ckpt/policy draft=/ckpt/draft")
	}
	select {
	case <-t.prepared:
	case <-ctx.Done():
		return api.PublishResult{}, fmt.Errorf("nothing published: the node is still starting: %w", ctx.Err())
	}
	t.background.interrupt()
	defer t.background.wake() // also after a failure: what it interrupted goes on
	if err := t.publishing.enter(ctx); err != nil {
		return api.PublishResult{}, fmt.Errorf("nothing published: another publish, or a repair, is at work: %w", err)
	}
	defer t.publishing.leave()
	if wantsOnlyFull(r) {
		return t.offerFull(ctx)
	}
	begun := t.now()
	head, catalogue, _, ok := t.mesh.Latest()
	epoch, err := t.nextEpoch(head, catalogue, r.NewEpoch)
	if err != nil {
		return api.PublishResult{}, err
	}
	version, err := t.nextVersion(epoch, head, r.Number)
	if err != nil {
		if !ok || epoch != head.Version.Epoch {
			return api.PublishResult{}, err
		}
		res, err := t.publishedAlready(ctx, r, mesh.VersionRoot{Version: head.Version, Root: head.Root}, err)
		res.Seconds = t.now().Sub(begun).Seconds()
		return res, err
	}
	c, err := openStates(t.dir.FS(), checkpoints, t.cut)
	if err != nil {
		return api.PublishResult{}, t.unusable(checkpoints, err)
	}
	defer c.Close()
	if err := c.checkAny(); err != nil {
		return api.PublishResult{}, api.NewError(http.StatusUnprocessableEntity, fmt.Errorf("nothing published: %w", err),
			"look at what the trainer saved with sparsecast inspect: a checkpoint without weights is of no use to anybody")
	}
	t.keepSidecars(checkpoints, !ok || head.Schema.Equals(c.Schema().ID()))
	d := t.shelf.draft()
	defer d.close()
	last := head.Root
	if !ok {
		last = t.slots.baseRoot() // what everybody starts from, and zero where nothing is
	}
	from := t.startFrom(last, catalogue)
	m, diff, err := t.code(ctx, c, from, d, r.Full)
	if err != nil {
		return api.PublishResult{}, fmt.Errorf("nothing published: %w", err)
	}
	next := mesh.Head{Run: t.runName, Version: version, Root: m.Target, Schema: m.Schema, Created: begun.UnixMilli()}
	edges, whole := t.library.whole(offered(head, catalogue)) // a crash may have left the head without its catalogue
	if m.Base != m.Target && !onOffer(m, last, edges) {
		if next.Edge, err = d.putEdge(m, c.Schema()); err != nil {
			return api.PublishResult{}, fmt.Errorf("nothing published: %w", err)
		}
		edges = append(edges, next.Edge)
	}
	var full uint64
	if m.Base.IsZero() {
		full = m.Coded
	}
	if (r.Full || !whole || m.Base != last) && !m.Base.IsZero() { // else those at the last version might find no path
		e, err := t.codeWish(ctx, wish{target: m.Target}, d)
		if err != nil {
			return api.PublishResult{}, fmt.Errorf("nothing published: %w", err)
		}
		edges, full = append(edges, e), e.Coded
	}
	edges = t.relieve(ctx, edges, t.pledge(next, edges, last), d)
	edges, excess := retain(edges, t.terms.limits, t.pledge(next, edges, last))
	if err := t.announce(ctx, next, edges, m); err != nil {
		return api.PublishResult{}, err
	}
	t.noteExcess(excess)
	d.close()
	t.shelve(next, edges)
	warning := diff.warning(numberOf(from, head, catalogue), full)
	if warning != "" {
		t.log.Warn().Uint64("number", version.Number).Msg(warning)
	}
	return api.PublishResult{VersionInfo: versionInfo(next, m), Full: full, Warning: warning, Seconds: t.now().Sub(begun).Seconds()}, nil
}

// numberOf returns the number of a state that was published; the base is version 0.
func numberOf(root delta.Root, head mesh.Head, catalogue mesh.Catalogue) uint64 {
	for _, v := range slices.Backward(catalogue.Versions) {
		if v.Root == root {
			return v.Version.Number
		}
	}
	return head.Version.Number
}

// pathsOf returns what r asks to publish.
func pathsOf(r api.PublishRequest) paths {
	if len(r.Paths) > 0 {
		return r.Paths
	}
	return paths{"": r.Path}
}

// unusable says why checkpoints cannot be published, and what to do about it.
func (t *trainer) unusable(from paths, err error) error {
	hint := "publish only checkpoints that are complete: write to another name and rename, or wait for the writer"
	for _, path := range from {
		if _, statErr := t.dir.FS().Stat(path); errors.Is(statErr, fs.ErrNotExist) {
			hint = "the node opens the checkpoint itself: the path must lead to it on the node's host"
		}
	}
	return api.NewError(http.StatusUnprocessableEntity, fmt.Errorf("nothing published: %w", err), hint)
}

const numbersHint = "numbers only grow within an epoch; publish with --new-epoch (or restart the node) after going back to an older checkpoint"

func (t *trainer) nextVersion(epoch uint64, head mesh.Head, number *uint64) (mesh.Version, error) {
	v := mesh.Version{Epoch: epoch, Number: head.Version.Number + 1}
	if number != nil {
		v.Number = *number
	} else if v.Number == 0 {
		return v, api.NewError(http.StatusConflict, errors.New("the newest number is the largest there is"), "give a number, with --new-epoch")
	}
	if v.Compare(head.Version) <= 0 {
		return v, api.NewError(http.StatusConflict,
			fmt.Errorf("number %d is not above %d, the newest in this epoch", v.Number, head.Version.Number),
			numbersHint)
	}
	return v, nil
}

// onOffer tells whether the edges on offer lead from the state published last to the target of m as cheaply as m does,
// as when a trainer goes back to an older checkpoint: then m need not be offered.
func onOffer(m *delta.Manifest, published delta.Root, edges []mesh.Edge) bool {
	path, err := Plan([]delta.Root{published}, m.Target, edges)
	if err != nil {
		return false
	}
	var coded uint64
	for _, e := range path {
		if coded += e.Coded; coded < e.Coded || coded > m.Coded {
			return false
		}
	}
	return true
}

// announce makes the blocks durable, then signs and sends the head.
func (t *trainer) announce(ctx context.Context, head mesh.Head, edges []mesh.Edge, m *delta.Manifest) error {
	if err := t.send(ctx, head, edges, m != nil); err != nil {
		return err
	}
	t.show(head, m)
	e := t.log.Info().Uint64("number", head.Version.Number).Str("root", head.Root.Short())
	if m != nil {
		e.Uint64("changed", m.Changed).Uint64("coded_bytes", m.Coded)
	}
	e.Msg("version published")
	return nil
}

// send signs and sends a head, which may be known already, and what is on offer with it. Work tells whether the head
// brings weights.
func (t *trainer) send(ctx context.Context, head mesh.Head, edges []mesh.Edge, work bool) error {
	if err := t.library.store.Sync(); err != nil {
		return fmt.Errorf("nothing published: make blocks durable: %w", err)
	}
	last, before, _, ok := t.mesh.Latest()
	catalogue := mesh.Catalogue{Run: t.runName, Epoch: max(head.Version.Epoch, before.Epoch), Seq: 1, Edges: edges, Versions: before.Versions}
	if before.Epoch == catalogue.Epoch {
		catalogue.Seq = before.Seq + 1
	}
	base := t.slots.baseRoot()
	switch {
	case ok && last.Version.Compare(head.Version) < 0:
		catalogue.Note(mesh.VersionRoot{Version: last.Version, Root: last.Root}) // a crash may have lost its catalogue
	case !ok && !base.IsZero() && head.Root != base && head.Version.Number > 0: // the base is version 0, announced or not
		catalogue.Note(mesh.VersionRoot{Version: mesh.BaseVersion(base), Root: base})
	}
	catalogue.Note(mesh.VersionRoot{Version: head.Version, Root: head.Root})
	return t.sign(ctx, head, catalogue, work)
}
