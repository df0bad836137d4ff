package node

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
	"github.com/sparsecast/sparsecast/node/files"
)

// relay keeps the blocks of every edge from one version to the next and passes them on. Edges back, shortcuts and full
// copies it fetches when a peer wants them: together they are several times as large, few ever need them, and the link
// to the trainer is precious. It holds no weights. What is fetched when is for errands to choose.
type relay struct {
	dir     *files.Dir
	mesh    *mesh.Run
	runName string
	library library
	shelf   *shelf
	board   *board
	log     zerolog.Logger

	patience time.Duration // how long the fetch of an edge may stand still

	// What follows belongs to the goroutine of run.
	head      mesh.Head
	known     bool        // there is a head
	offered   []mesh.Edge // with it
	errands   errands
	here      map[mesh.Edge]time.Time // when edges were found whole, since the last news
	underWay  map[errand]*underWay
	rests     rests
	overtaken time.Time // when a newer version last came while, or soon after, something was fetched for a peer
	breath    time.Time // until when that is soon: as long again as the last such fetch took, since news may be late, too
	ended     chan ended
	work      sync.WaitGroup
	busy      bool   // there was something to do, by what the board says
	told      string // why something could not be had, by what the board says
}

// run fetches what is to be here until ctx ends.
func (r *relay) run(ctx context.Context) error {
	if err := r.dir.Remove("current"); err != nil { // left behind by a rollout that became a relay
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer r.work.Wait()
	defer stop()
	r.underWay, r.rests, r.ended = make(map[errand]*underWay), make(rests), make(chan ended)
	r.board.setState(api.StateWaiting)
	r.hear()
	meeting := r.mesh.Meeting()
	look := time.NewTicker(min(lookEvery, r.patience))
	defer look.Stop()
	for {
		r.tend(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-r.mesh.Updates():
			r.hear()
		case <-meeting: // somebody has come, who may have what nobody had
			meeting = r.mesh.Meeting()
			r.rests.end()
		case e := <-r.ended:
			r.finish(e)
		case <-look.C:
		}
	}
}

// hear takes in what is on offer by now, and forgets what is not.
func (r *relay) hear() {
	head, catalogue, _, known := r.mesh.Latest()
	steps, others := split(head, catalogue)
	if head.Version.Compare(r.head.Version) > 0 && (len(r.errands.wanted) > 0 || time.Now().Before(r.breath)) {
		r.overtaken = time.Now()
	}
	r.head, r.known, r.offered = head, known, slices.Concat(steps, others)
	r.board.offer(r.offered, origin(catalogue.Versions))
	if !known {
		return
	}
	r.board.update(func(b *board) { v := versionInfo(head, nil); b.latest = &v })
	r.toil()
	r.shelf.offer(r.runName, head.Version, r.offered)
	if _, err := r.shelf.sweep(); err != nil {
		r.log.Warn().Err(err).Msg("old blocks could not be removed")
	}
	r.here = make(map[mesh.Edge]time.Time)
	r.rests.keep(r.kept())
	r.survey(steps, others)
	if _, whole := r.here[head.Edge]; whole {
		r.board.serve(readyNow(head), "")
	}
}

// survey finds out what of the edges on offer is lacking here.
func (r *relay) survey(steps, others []mesh.Edge) {
	lacking := func(edges []mesh.Edge, here func(mesh.Edge) bool) (found []mesh.Edge) {
		return slices.DeleteFunc(slices.Clone(edges), here)
	}
	r.errands.steps = lacking(steps, r.isHere)
	r.errands.unknown = lacking(slices.Concat(others, r.errands.steps), r.library.knows)
	r.errands.left = make(remainder)
	for _, e := range r.errands.steps {
		r.errands.left[e] = r.library.left(e)
	}
}

// isHere tells whether all of an edge is here. That is believed for a while, since a peer that fetches it from here takes
// long, and not for ever, since a block may rot.
func (r *relay) isHere(e mesh.Edge) bool {
	switch {
	case r.underWay[errand{e, true}] != nil:
		return false
	case time.Since(r.here[e]) < r.patience:
		return true
	case !r.library.has(e):
		return false
	}
	r.here[e] = time.Now()
	return true
}

// kept returns the edges that are on offer, stay for those who fetch them still, or are under way.
func (r *relay) kept() []mesh.Edge {
	edges := slices.Concat(r.offered, r.shelf.lingers(r.runName))
	for it := range r.underWay {
		if it.whole && !slices.Contains(edges, it.edge) {
			edges = append(edges, it.edge)
		}
	}
	return edges
}

// want finds out what peers are fetching that is not all here.
func (r *relay) want() {
	r.errands.wanted = nil
	for _, e := range r.kept() {
		if !r.mesh.Wanted(e.Manifest) || r.isHere(e) {
			continue
		}
		r.errands.wanted = append(r.errands.wanted, e)
		if u := r.underWay[errand{e, true}]; u != nil {
			u.asked = true
		}
		if _, known := r.errands.left[e]; !known {
			r.errands.left[e] = r.library.left(e)
		}
	}
}

// split tells the edges on offer that lead from one version to the next from the others.
func split(head mesh.Head, c mesh.Catalogue) (steps, others []mesh.Edge) {
	type ends struct{ base, target delta.Root }
	next := make(map[ends]bool, len(c.Versions))
	var before delta.Root
	for _, v := range c.Versions {
		next[ends{before, v.Root}] = true
		before = v.Root
	}
	for _, e := range offered(head, c) {
		switch {
		case slices.Contains(steps, e):
		case e == head.Edge || next[ends{e.Base, e.Target}]:
			steps = append(steps, e)
		default:
			others = append(others, e)
		}
	}
	return steps, others
}

// toil says that there is something to do.
func (r *relay) toil() {
	if !r.busy {
		r.board.setState(api.StateFetching)
	}
	r.busy = true
}

// idle says how far the relay is when there is nothing more to do for now.
func (r *relay) idle() {
	err := r.rests.err(time.Now())
	text := ""
	if err != nil {
		text = err.Error()
	}
	if !r.busy && text == r.told {
		return
	}
	r.busy, r.told = false, text
	if err != nil {
		r.board.fail(err)
	} else if r.known {
		r.board.serve(readyNow(r.head), "")
	}
}

func readyNow(h mesh.Head) api.VersionInfo {
	v := versionInfo(h, nil)
	v.ReadyAt = time.Now().UnixMilli()
	return v
}
