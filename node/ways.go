package node

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/files"
)

// ways keeps the ways back of one run. It belongs to the goroutine of its rollout; a nil one has none and keeps none.
type ways struct {
	dir     *files.Dir
	library library
	shelf   *shelf
	runName string
	most    int // ways kept
	log     zerolog.Logger
	name    func(delta.Root) mesh.Version // of a state, zero when it has none that is known

	list []wayBack
}

// openWays takes up the ways back of a rollout with one slot.
func (r *rollout) openWays(cfg RunConfig) {
	if cfg.Slots != 1 || cfg.Reverse == 0 {
		return
	}
	r.ways = &ways{dir: r.dir, library: r.library, shelf: r.shelf, runName: r.runName, most: cfg.Reverse, log: r.log, name: r.nameOf}
	r.ways.recall()
}

// nameOf returns the newest version with that root which is known here.
func (r *rollout) nameOf(root delta.Root) (v mesh.Version) {
	r.board.look(func(b *board) { v = b.situation().names()[root] })
	return v
}

// recall takes up what is noted. What is damaged is forgotten.
func (w *ways) recall() {
	var err error
	if w.list, err = loadWays(w.dir); err != nil {
		w.log.Warn().Err(err).Msg("the ways back that were kept here are not known any more")
	}
}

// all returns the ways back.
func (w *ways) all() []wayBack {
	if w == nil {
		return nil
	}
	return w.list
}

// among returns edges on offer together with the ways back.
func (w *ways) among(edges []mesh.Edge) []mesh.Edge {
	joined := slices.Clone(edges)
	for _, way := range w.all() {
		if !slices.Contains(joined, way.Edge) {
			joined = append(joined, way.Edge)
		}
	}
	return joined
}

// add makes an edge of a stream back, and keeps it. It is durable then, as are its blocks.
func (w *ways) add(ctx context.Context, stream io.ReadSeeker, schema *delta.Schema, sum delta.Summary) error {
	d := w.shelf.draft()
	defer d.close()
	m, err := delta.CutEdge(ctx, stream, schema, sum, nil, d.put)
	if err != nil {
		return err
	}
	e, err := d.putEdge(m, schema)
	if err != nil {
		return err
	}
	if err := w.library.store.Sync(); err != nil {
		return err
	}
	list := slices.DeleteFunc(slices.Clone(w.list), func(o wayBack) bool { return o.Edge == e })
	list = append(list, wayBack{Edge: e, Version: w.name(e.Target)})
	list = list[max(0, len(list)-w.most):]
	if err := saveWays(w.dir, list); err != nil {
		return err
	}
	w.list = list
	w.shelf.add(w.runName, e)
	w.log.Debug().Str("from", e.Base.Short()).Str("to", e.Target.Short()).Uint64("coded_bytes", e.Coded).Msg("kept the way back")
	return nil
}

// review forgets ways of which a block is gone.
func (w *ways) review() { w.keep(func(way wayBack) bool { return w.library.has(way.Edge) }) }

// tidy forgets ways that are of no use any more.
func (w *ways) tidy(held []delta.Root, base delta.Root, edges []mesh.Edge) {
	if w == nil {
		return
	}
	useful := usefulWays(w.list, held, base, edges, w.most)
	w.keep(func(way wayBack) bool { return slices.Contains(useful, way) })
}

// keep forgets all but some ways. That they are still noted when the note cannot be written does no harm.
func (w *ways) keep(want func(wayBack) bool) {
	if w == nil || !slices.ContainsFunc(w.list, func(way wayBack) bool { return !want(way) }) {
		return
	}
	w.list = slices.DeleteFunc(slices.Clone(w.list), func(way wayBack) bool { return !want(way) })
	if err := saveWays(w.dir, w.list); err != nil {
		w.log.Warn().Err(fmt.Errorf("after some were forgotten: %w", err)).Msg("the ways back are not noted")
	}
}
