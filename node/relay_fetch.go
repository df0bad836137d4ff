package node

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
)

// behindFor is how long a relay that was overtaken fetches nothing unasked.
const behindFor = 30 * time.Second

// underWay is an errand that is being run. It stays on the books until its goroutine has told that it ended, also when
// it was called off.
type underWay struct {
	callOff context.CancelFunc
	off     bool
	asked   bool // by a peer
	since   time.Time
	at      stage
}

// ended tells how an errand ended.
type ended struct {
	errand
	err error
}

// tend starts what is to be under way by now and calls off the rest.
func (r *relay) tend(ctx context.Context) {
	r.want()
	r.errands.resting = r.rests.now(time.Now())
	r.errands.underWay, r.errands.stalled = make(map[errand]bool), make(map[errand]bool)
	for it, u := range r.underWay {
		_, want, _ := u.at.now()
		_, lacking := r.mesh.Lacking(want)
		r.errands.underWay[it], r.errands.stalled[it] = !u.off, lacking && !u.off
	}
	r.errands.behind = time.Since(r.overtaken) < behindFor
	chosen := make(map[errand]bool)
	for _, it := range r.errands.choose() {
		chosen[it] = true
		if r.underWay[it] == nil {
			r.start(ctx, it)
		}
	}
	for it, u := range r.underWay {
		if !chosen[it] {
			u.off = true
			u.callOff()
		}
	}
	if len(r.underWay) == 0 {
		r.idle()
	}
}

func (r *relay) start(ctx context.Context, it errand) {
	r.toil()
	one, cancel := context.WithCancel(ctx)
	u := &underWay{callOff: cancel, since: time.Now()}
	r.underWay[it] = u
	r.work.Go(func() {
		defer cancel()
		err := r.fetch(one, it, &u.at)
		select {
		case r.ended <- ended{it, err}:
		case <-ctx.Done():
		}
	})
}

// finish takes an errand off the books. What failed is left alone for a while, longer every time.
func (r *relay) finish(e ended) {
	u := r.underWay[e.errand]
	delete(r.underWay, e.errand)
	switch {
	case e.err == nil:
		if u.asked {
			r.breath = time.Now().Add(time.Since(u.since))
		}
		r.rests.forget(e.errand)
		r.got(e.errand)
	case !u.off:
		err := fmt.Errorf("edge to %s: %w", e.edge.Target.Short(), e.err)
		pause := r.rests.begin(time.Now(), e.errand, err)
		r.log.Error().Err(err).Stringer("retry_in", pause).Msg("some of what is on offer could not be fetched")
	}
}

// got notes what has come.
func (r *relay) got(it errand) {
	is := func(e mesh.Edge) bool { return e == it.edge }
	r.errands.unknown = slices.DeleteFunc(r.errands.unknown, is)
	if !it.whole {
		return
	}
	r.errands.steps = slices.DeleteFunc(r.errands.steps, is)
	r.here[it.edge] = time.Now()
	if it.edge == r.head.Edge {
		r.board.serve(readyNow(r.head), "") // the older ones are for late joiners
	}
}

// fetch brings an edge here, its chunks only when asked to. It gives up when no peer has them.
func (r *relay) fetch(ctx context.Context, it errand, at *stage) error {
	defer r.shelf.read(it.edge)()
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel(nil)
	patience := r.patience
	if !it.whole { // nobody waits for what says how the rest looks
		patience = min(hastyAfter, patience)
	}
	watch.Go(func() { watchStall(ctx, cancel, r.mesh, at, patience) })
	err := r.fetchStages(ctx, it, at)
	if cause := context.Cause(ctx); cause != nil && err != nil {
		return cause
	}
	return err
}

func (r *relay) fetchStages(ctx context.Context, it errand, at *stage) error {
	m, err := r.library.describe(ctx, it.edge, at)
	if err != nil || !it.whole {
		return err
	}
	at.enter(it.edge, it.edge.Manifest)
	return r.mesh.Fetch(ctx, it.edge.Manifest, m, func(int, int) { at.gain() })
}
