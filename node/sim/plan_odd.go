package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
)

// drawForms has weights of other forms in some plans, and rollouts short of memory.
func (p *Plan) drawForms(rng *rand.Rand) {
	p.Form = form{layers: oneIn(rng, 6), states: oneIn(rng, 6), large: oneIn(rng, 2)}
	for i := range p.Boxes {
		b := &p.Boxes[i]
		b.OneSlot = b.Role == mesh.RoleRollout && oneIn(rng, 6)
	}
}

// check has a user let a node look at its copies of the weights.
type check struct{ Who int }

func (d *check) String() string {
	return fmt.Sprintf("the user of %s has its slots checked", boxName(d.Who))
}

func (d *check) do(w *World) { w.boxes[d.Who].check() }

// scribble has somebody change a byte of the slot that a node serves while that is down.
type scribble struct {
	Who   int
	Where uint64
}

func (d *scribble) String() string {
	return fmt.Sprintf("%s restarts, and meanwhile somebody writes into the slot that it serves", boxName(d.Who))
}

func (d *scribble) do(w *World) {
	b := w.boxes[d.Who]
	b.quit()
	w.after(time.Second, func() {
		if b.life == nil || b.life.told {
			b.scribble(d.Where)
		}
		b.revive()
	})
}

// drawScribbles has somebody write where only nodes should, in a few plans.
func (p *Plan) drawScribbles(rng *rand.Rand) {
	if oneIn(rng, 4) {
		p.add(spread(rng, p.Heal/4, p.Heal), &scribble{p.someRollout(rng), rng.Uint64()})
	}
}

// drawChecks has users notice some of the bits that flip.
func (p *Plan) drawChecks(rng *rand.Rand) {
	for _, s := range p.Steps {
		if d, ok := s.Do.(*flip); ok && oneIn(rng, 3) && p.Boxes[d.Who].Role != mesh.RoleRelay {
			p.add(s.At+spread(rng, time.Millisecond, 3*time.Second), &check{d.Who})
		}
	}
}

// drawAims has some nodes die where it matters most: within a few calls of the moment at which something takes its place.
func (p *Plan) drawAims(rng *rand.Rand) {
	for _, s := range p.Steps {
		if d, ok := s.Do.(*stop); ok && d.AtCall > 0 && oneIn(rng, 3) {
			d.Since, d.AtCall = pick(rng, "/current", "/slots/", "/served.json", "/head.signed"), 1+rng.IntN(5)
		}
	}
}
