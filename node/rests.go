package node

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
)

// rests remembers which errands of a relay failed, and until when each is left alone. It is plain state, without a clock
// of its own.
type rests map[errand]*rest

type rest struct {
	until time.Time
	pause time.Duration // the last one
	err   error
}

// begin notes a failure, and returns for how long nothing is tried: longer every time.
func (r rests) begin(now time.Time, it errand, err error) time.Duration {
	pause := firstPause
	if old := r[it]; old != nil {
		pause = min(2*old.pause, longPause)
	}
	r[it] = &rest{now.Add(pause), pause, err}
	return pause
}

// end has everything tried again.
func (r rests) end() {
	for _, one := range r {
		one.until = time.Time{}
	}
}

// forget drops an errand that was done.
func (r rests) forget(it errand) { delete(r, it) }

// keep drops all errands but those to some edges.
func (r rests) keep(edges []mesh.Edge) {
	there := edgeSet(edges)
	maps.DeleteFunc(r, func(it errand, _ *rest) bool { return !there[it.edge] })
}

// now returns what is left alone.
func (r rests) now(now time.Time) map[errand]bool {
	set := make(map[errand]bool)
	for it, one := range r {
		if now.Before(one.until) {
			set[it] = true
		}
	}
	return set
}

// err says why what is left alone is, nil when nothing is.
func (r rests) err(now time.Time) error {
	var errs []error
	for it := range r.now(now) {
		errs = append(errs, r[it].err)
	}
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}
