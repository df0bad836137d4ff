package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
)

// twins is two trainers at once, which know nothing of each other: both restart, their clocks agree, and at one instant
// both go back to the first step, take another one each, and publish it in a new epoch. The same epoch, since it is made
// of the time.
type twins struct {
	One, Other int
	Apart      []int         // on the side of the first
	After      time.Duration // from the restart to the publishes
	For        time.Duration // from the restart until they hear of each other
	Seed       uint64
}

func (d *twins) String() string {
	var names []string
	for _, i := range d.Apart {
		names = append(names, boxName(i))
	}
	return fmt.Sprintf("%s and %s restart, apart for %s, the first with %v; after %s both publish their first step anew",
		boxName(d.One), boxName(d.Other), d.For, names, d.After)
}

func (d *twins) do(w *World) {
	(&split{Side: d.Apart, For: d.For}).do(w)
	w.boxes[d.Other].clock.Store(w.boxes[d.One].clock.Load())
	for _, i := range []int{d.One, d.Other} {
		w.boxes[i].quit()
		w.after(time.Second, w.boxes[i].revive)
	}
	w.after(d.After, func() {
		w.oracle.expectTwins()
		for i, who := range []int{d.One, d.Other} {
			p := w.boxes[who].program
			p.clear()
			p.rewind(everything, true)
			p.enqueue(&publish{Who: who, Change: sparse, Seed: d.Seed + uint64(i)})
		}
	})
}

// everything is more steps than any program takes.
const everything = 1 << 30

// drawTwins adds a trainer to some plans that has the key of the first, by mistake, or one of its own; where there is
// another one already it is that.
func (p *Plan) drawTwins(rng *rand.Rand) {
	if !oneIn(rng, 8) {
		return
	}
	if len(p.trainers()) == 1 {
		p.Boxes = append(p.Boxes, BoxPlan{
			Name: boxName(len(p.Boxes)), Role: mesh.RoleTrainer, Cluster: p.Boxes[0].Cluster, Base: p.Boxes[0].Base, BaseFile: oneIn(rng, 3),
		})
	}
	last := &p.Boxes[len(p.Boxes)-1]
	last.First, last.Key = 0, pick(rng, 0, 0, 0, len(p.Boxes)-1)
}

// drawMeeting has the twins publish at once, if there are any, and leaves out what would come in between.
func (p *Plan) drawMeeting(rng *rand.Rand) {
	both := p.trainers()
	if len(both) != 2 || p.Boxes[both[1]].First > 0 {
		return
	}
	d := &twins{One: both[0], Other: both[1], Apart: []int{both[0]}, After: spread(rng, 5*time.Second, 15*time.Second), Seed: rng.Uint64() &^ 1}
	for i, b := range p.Boxes {
		if b.Role != mesh.RoleTrainer && oneIn(rng, 2) {
			d.Apart = append(d.Apart, i)
		}
	}
	d.For = d.After + spread(rng, time.Second, 20*time.Second)
	from := spread(rng, 5*time.Second, p.Heal-d.For)
	quiet, end := from-20*time.Second, from+d.For+10*time.Second // before and after, for they still do what came before
	p.Steps = slices.DeleteFunc(p.Steps, func(s Step) bool { return s.At >= quiet && s.At <= end && inTheWay(s.Do, both) })
	p.add(from, d)
	more := pick(rng, 0, 0, 1, 2) // both may go on before they know, mostly as far as the other
	for i, who := range both {
		for range more + i*pick(rng, 0, 0, 0, 1) {
			p.add(from+spread(rng, d.After, d.For), &publish{Who: who, Change: sparse, Seed: rng.Uint64()})
		}
	}
}

// inTheWay tells whether a step would keep trainers from publishing at once.
func inTheWay(d deed, trainers []int) bool {
	switch d := d.(type) {
	case *publish, *rewind, *split, *wire:
		return true
	case *stop:
		return slices.Contains(trainers, d.Who)
	case *ail:
		return slices.Contains(trainers, d.Who)
	case *fill:
		return slices.Contains(trainers, d.Who)
	case *jump:
		return slices.Contains(trainers, d.Who)
	}
	return false
}
