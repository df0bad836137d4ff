package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// How long what follows the end of all faults may take, in virtual time. Retransmission waits up to 10 s, a failed
// update up to 30 s, and those who could not be reached are dialled again after at most a minute.
const (
	settleWithin   = 30 * time.Second
	backWithin     = 2 * time.Minute // as long as a plan may keep a machine down
	convergeWithin = 3 * time.Minute
	followWithin   = time.Minute
	quietFor       = 30 * time.Second
)

// recover ends all faults and wants everybody at the newest version soon after, also after a restart, and order on every
// disk.
func (w *World) recover() {
	w.note("all faults end")
	w.heal()
	w.until(w.since() + settleWithin)
	w.require(converges, backWithin, w.missing)
	for _, b := range w.boxes {
		b.troubled.Store(false)
		if b.plan.Role == mesh.RoleRollout {
			b.unpin()
		}
	}
	w.require(freezes, convergeWithin, w.divided)
	w.lead()
	w.follow(w.plan.needsFull(), convergeWithin)
	w.follow(false, followWithin)
	w.until(w.since() + quietFor)
	w.inspect((*box).lookAtStore)
	w.restart()
	w.inspect((*box).lookForLeftovers)
}

// inspect looks at all boxes, unless something went wrong already.
func (w *World) inspect(look func(*box)) {
	if w.failure != nil {
		return
	}
	for _, b := range w.followers() {
		look(b)
	}
}

// followers are all that must serve what the first trainer publishes, with itself. Other trainers serve what they
// published.
func (w *World) followers() (list []*box) {
	for i, b := range w.boxes {
		if i == 0 || !b.trainer() {
			list = append(list, b)
		}
	}
	return list
}

// restart has every node end and start again, which must change nothing.
func (w *World) restart() {
	if w.failure != nil {
		return
	}
	w.note("finally everybody restarts")
	r := w.boxes[0].program.last()
	for _, b := range w.followers() {
		b.quit()
		w.after(time.Second, b.revive)
	}
	w.until(w.since() + 2*time.Second)
	w.require(converges, followWithin, func() string { return w.behind(mesh.Version{Epoch: r.Epoch, Number: r.Number}) })
}

func (w *World) since() time.Duration { return time.Since(w.start) }

func (w *World) heal() {
	w.net.Heal()
	for i, b := range w.boxes {
		for j := range w.boxes {
			w.shape(i, j, false)
		}
		b.tap.ease()
		b.empty()
		b.clock.Store(0)
		if b.harmed.Load() {
			b.layBase()
		}
	}
}

// follow publishes once more and waits until all serve it.
func (w *World) follow(full bool, within time.Duration) {
	if w.failure != nil {
		return
	}
	lead := w.boxes[0].program
	before := lead.last()
	d := &publish{Who: 0, Change: sparse, Full: full, Seed: uint64(w.since())}
	w.note("finally %s", d)
	d.do(w)
	w.require(converges, within, func() string {
		r := lead.last()
		if r == before {
			return "the final publish does not succeed"
		}
		return w.behind(mesh.Version{Epoch: r.Epoch, Number: r.Number})
	})
}

// lead has the first trainer take over, as an operator would: another one with its key has to end, it is not asked for
// anything while it says that no peer is connected, and it restarts where it says that it cannot go on.
func (w *World) lead() {
	first := w.boxes[0]
	first.program.clear()
	for _, b := range w.boxes[1:] {
		b.program.close() // only the first trains on
		if b.id == first.id {
			b.down++
			b.quit()
		}
	}
	for end := w.since() + followWithin; w.since() < end && first.alone(); {
		w.until(w.since() + time.Second)
	}
	w.until(w.since() + 5*time.Second)
	if n := first.alive(); n != nil && n.Status(w.ctx).State == api.StateError {
		w.note("finally %s restarts, since it says: %s", first.name(), n.Status(w.ctx).Error)
		first.quit()
		w.after(time.Second, first.revive)
		w.until(w.since() + 5*time.Second)
	}
	first.program.rewind(0, true)
}

// alone tells whether nobody is connected to a machine's node.
func (b *box) alone() bool {
	n := b.alive()
	return n == nil || len(n.Status(b.w.ctx).Peers) == 0
}

// missing says which nodes are not up.
func (w *World) missing() string {
	var names []string
	for _, b := range w.boxes {
		if n := b.alive(); n == nil || n.Status(w.ctx).State == api.StateStarting {
			names = append(names, b.name())
		}
	}
	if names == nil {
		return ""
	}
	return strings.Join(names, ", ") + " not up"
}

// behind says who does not serve v.
func (w *World) behind(v mesh.Version) string {
	var late []string
	for _, b := range w.followers() {
		n := b.alive()
		if n == nil {
			late = append(late, b.name()+" is down")
			continue
		}
		s := n.Status(w.ctx)
		if s.Served == nil || !b.near(versionOf(s.Served), v) {
			late = append(late, fmt.Sprintf("%s serves %s, state %s %s", b.name(), textOf(s.Served), s.State, s.Error))
		}
	}
	if late == nil {
		return ""
	}
	return fmt.Sprintf("version %s is the newest, but:\n    %s", v, strings.Join(late, "\n    "))
}

// near tells whether a node may rest where it is.
func (b *box) near(at, newest mesh.Version) bool {
	lag := uint64(max(b.plan.Lag, 0)) //nolint:gosec // not negative
	return at.Shares(newest) && at.Number <= newest.Number && newest.Number-at.Number <= lag
}

func textOf(v *api.VersionInfo) string {
	if v == nil {
		return "nothing"
	}
	return versionOf(v).String()
}

// require lives until lacks says nothing any more.
func (w *World) require(invariant string, within time.Duration, lacks func() string) {
	for deadline := w.since() + within; w.failure == nil; {
		last := lacks()
		if last == "" {
			return
		}
		if w.since() >= deadline {
			w.violate(invariant, "%s later, %s", within, last)
			return
		}
		w.until(w.since() + time.Second)
	}
}
