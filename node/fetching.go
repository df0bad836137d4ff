package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// errReplan says that another path than the one being fetched has become the better one.
var errReplan = errors.New("superseded by a better path")

// fetch brings the blocks of a path into the store and returns its manifests. When a newer version is heard it goes on
// unless the download is to be left for a better path, but only up to the next version that can be brought up. It ends
// with errReplan when there is a better path, or when nobody can deliver an edge that another path leads around. Whatever
// ends it early, the manifests of what can be brought up are returned, if any.
func (r *rollout) fetch(ctx context.Context, head mesh.Head, path []mesh.Edge) ([]*delta.Manifest, error) {
	r.board.setState(api.StateFetching)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer r.board.note("fetch", "")
	done := make(chan error, 1)
	d := &download{path: path, to: head.Version, manifests: make([]*delta.Manifest, len(path)), scout: newScout(ctx, r.mesh),
		overtaken: overtaken{newest: head.Version}}
	defer d.scout.end()
	r.begin(path)
	defer r.end()
	go func() { done <- r.fetchPath(ctx, head, d) }()
	look := time.NewTicker(min(lookEvery, r.patience))
	defer look.Stop()
	for {
		select {
		case err := <-done:
			if cause := context.Cause(ctx); cause != nil && err != nil {
				err = cause
			}
			r.tellPace(d, true)
			if err == nil || errors.Is(err, errReplan) {
				return r.usable(d, err)
			}
			return nil, err
		case <-r.mesh.Updates():
			r.avoid.news(time.Now())
			if r.superseded(d) {
				cancel(errReplan)
			}
		case <-r.told:
			if r.superseded(d) {
				cancel(errReplan)
			}
		case now := <-look.C:
			if r.stuck(now, d) {
				cancel(errReplan)
			}
			r.tellPace(d, false)
		}
	}
}

// stuck tells whether a download waits in vain for an edge that can be gone around, and has it avoided then, or for one
// that can be left for a better path since somebody came. While no peer is connected nobody knows who has what, and only
// a way that is all here is taken. When there is no way around, status says what is waited for.
func (r *rollout) stuck(now time.Time, d *download) bool {
	e, want, moves := d.at.now()
	block, lacking := r.mesh.Lacking(want)
	if r.greet(now) && lacking && r.superseded(d) {
		return true
	}
	alone := r.mesh.Alone()
	stood := d.stood(now, moves, lacking, alone)
	if stood < min(scoutAfter, r.patience) {
		r.board.note("fetch", "")
		d.missing = nil
		return false
	}
	unknown := d.scout.unknown()
	if alone {
		unknown = r.missing(d, stood)
	}
	around, clear := r.around(now, e, unknown)
	nobody := block == e.Manifest && !alone
	if nobody {
		d.scout.ask(around)
	}
	wait := patienceFor(r.patience, nobody && clear, d.path, around)
	gone := r.isGone(e)
	if alone || gone && !r.mesh.Relayed(e.Manifest) && r.library.left(e) == e.Coded {
		wait = min(hastyAfter, r.patience) // what leads around is here, or nobody is going to bring what left the offer
	}
	switch {
	case around != nil && stood >= wait && (clear || !alone):
		r.log.Warn().Stringer("block", block).Str("from", e.Base.Short()).Str("to", e.Target.Short()).
			Msg("no peer has a block of an edge, going another way")
		for _, e := range append(unknown, e) {
			r.avoid.blame(now, e)
		}
		if gone {
			r.unfinished.drop(e)
		}
		return true
	case stood >= r.patience:
		r.board.note("fetch", fmt.Sprintf("a part of what leads to the version wanted is lacking, and no peer has it: waiting for one that does, since there is no other way (block %s)", block))
	}
	return false
}

// isGone tells whether an edge is no longer on offer.
func (r *rollout) isGone(e mesh.Edge) bool {
	head, catalogue, _, _ := r.mesh.Latest()
	return !slices.Contains(r.ways.among(offered(head, catalogue)), e)
}

// missing returns the edges of which not all is here, found out once for each time that a download stands still.
func (r *rollout) missing(d *download, stood time.Duration) []mesh.Edge {
	if d.missing == nil && stood >= min(hastyAfter, r.patience) {
		head, catalogue, _, _ := r.mesh.Latest()
		d.missing = slices.DeleteFunc(r.edges(head, catalogue), r.library.has)
	}
	return slices.Clone(d.missing)
}

// around returns the path to where this node should be without e, nil when there is none. Clear tells whether it avoids
// all that nobody could deliver before, and what is unknown.
func (r *rollout) around(now time.Time, e mesh.Edge, unknown []mesh.Edge) (path []mesh.Edge, clear bool) {
	g, head, catalogue := r.judge()
	avoid := r.avoid.now(now)
	for _, u := range unknown {
		avoid[u] = true
	}
	return detour(r.slots.held(), g.to.Root, r.edges(head, catalogue), avoid, e)
}

// plan returns the path to take to a state, around what nobody could deliver.
func (r *rollout) plan(target delta.Root, edges []mesh.Edge) ([]mesh.Edge, error) {
	now := time.Now()
	r.greet(now)
	r.avoid.forget(edges)
	return PlanAround(r.slots.held(), target, edges, r.avoid.now(now), r.left())
}

// begin notes a path that is about to be fetched.
func (r *rollout) begin(path []mesh.Edge) {
	var names map[delta.Root]mesh.Version
	r.board.look(func(b *board) { names = b.situation().names() })
	r.unfinished.begin(path, names)
	r.noteUnfinished()
	r.look()
}

// noteUnfinished keeps what downloads have begun for the next start.
func (r *rollout) noteUnfinished() { r.unfinishedMemo.keep(r.unfinished.kept()) }

// end notes what is left of downloads when one has ended.
func (r *rollout) end() {
	head, catalogue, _, _ := r.mesh.Latest()
	r.unfinished.end(r.ways.among(offered(head, catalogue)))
	r.noteUnfinished()
}

// usable returns the manifests up to the newest version that can be brought up by now, and err when there is none.
// What a trainer that went back has left behind is not brought up.
func (r *rollout) usable(d *download, err error) ([]*delta.Manifest, error) {
	p, _ := r.pursue(d)
	n := p.reached(int(d.whole.Load()))
	if n == 0 || err != nil && p.vain {
		return nil, errReplan
	}
	return d.manifests[:n], nil
}

// pursue returns the download as it is to be looked at by now, and the goal.
func (r *rollout) pursue(d *download) (p pursuit, g goal) {
	g, _, _ = r.judge()
	to := mesh.VersionRoot{Version: d.to, Root: d.path[len(d.path)-1].Target}
	r.board.look(func(b *board) {
		s := b.situation()
		p = pursuit{path: d.path, stops: s.stops(g, d.path), vain: s.leftBehind(to)}
	})
	return p, g
}

// greet tells whether another peer has come: it may have what nobody had.
func (r *rollout) greet(now time.Time) bool {
	select {
	case <-r.meeting:
		r.meeting = r.mesh.Meeting()
		r.avoid.news(now)
		return true
	default:
		return false
	}
}

// superseded tells whether a download is to be left: it leads nowhere any more, or there is a better path. When a newer
// version is out, and the download is not left, it ends at the next version that can be brought up: versions come no more
// often that way than they are published.
func (r *rollout) superseded(d *download) bool {
	p, g := r.pursue(d)
	if g.do != move && g.do != collect || g.to.Version == d.to && g.to.Root != d.path[len(d.path)-1].Target {
		return true // the latter when two publishers chose one version
	}
	if d.to.Compare(g.to.Version) >= 0 {
		p = p.whole()
	}
	head, catalogue, _, _ := r.mesh.Latest()
	left := r.left()
	better, err := PlanAround(r.slots.held(), g.to.Root, r.edges(head, catalogue), r.avoid.now(time.Now()), left)
	switch {
	case err != nil:
	case p.vain && !p.leadsInto(better), !p.stays(better, left):
		return true
	}
	d.stops.Store(&p.stops)
	d.overtaken.by(g.to.Version)
	return false
}

func (r *rollout) fetchPath(ctx context.Context, head mesh.Head, d *download) error {
	if err := r.keepSchema(ctx, d.path[0].Base); err != nil {
		return err
	}
	progress := api.Progress{}
	for i, e := range d.path {
		m, err := r.library.describe(ctx, e, &d.at)
		if err != nil {
			return err
		}
		d.manifests[i] = m
		progress.ChunksTotal += len(m.Chunks)
	}
	progress.Version = versionInfo(head, d.manifests[len(d.path)-1])
	before := progress
	for i, e := range d.path {
		m := d.manifests[i]
		d.at.enter(e, e.Manifest)
		err := r.mesh.Fetch(ctx, e.Manifest, m, func(done, total int) {
			d.at.gain()
			progress.ChunksDone = before.ChunksDone + done
			progress.Bytes = before.Bytes + min(uint64(done)*uint64(m.ChunkSize), m.Coded)
			p := progress
			r.board.update(func(b *board) { b.progress = &p })
		})
		if err != nil {
			return err
		}
		if d.whole.Add(1); d.stop(i) {
			return nil
		}
		before.ChunksDone += len(m.Chunks)
		before.Bytes += m.Coded
	}
	return nil
}

// keepSchema puts the schema of a held state into the store, where the deltas that start from it are going to need it.
func (r *rollout) keepSchema(ctx context.Context, root delta.Root) error {
	_, c, err := r.slots.open(ctx, root)
	if err != nil || c == nil {
		return err
	}
	defer c.Close()
	return r.library.keepSchema(c.Schema())
}
