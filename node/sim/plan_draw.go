package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
)

// Draw makes the plan of a seed.
func Draw(seed uint64) *Plan {
	rng := stream(seed, "plan")
	p := &Plan{
		Seed:  seed,
		Keep:  pick(rng, 2, 4, 8, 64, 64),
		Back:  pick(rng, 0, 2, 8),
		Bytes: pick(rng, "0", "0", "0", "6KB", "600B"),
		Full:  pick(rng, "auto", "auto", "always", "never"),
		Poll:  pick(rng, time.Second, 3*time.Second, 10*time.Second),
		Near:  Link{Latency: spread(rng, time.Millisecond, 5*time.Millisecond), Jitter: spread(rng, 0, 2*time.Millisecond)},
		Far:   Link{Latency: spread(rng, 20*time.Millisecond, 120*time.Millisecond), Jitter: spread(rng, 0, 30*time.Millisecond)},
		Heal:  spread(rng, time.Minute, 5*time.Minute),
	}
	if p.Full == "never" {
		p.Bytes = "0" // too little room drops a full copy that was asked for, and nobody could come from elsewhere
	}
	p.drawBoxes(rng)
	rare := stream(seed, "twins") // of its own, so that other plans stay what they are
	p.drawTwins(rare)
	odd := stream(seed, "odd")
	p.drawForms(odd)
	p.drawPublishes(rng)
	p.drawConfirms(rng)
	p.drawFaults(rng)
	p.drawMeeting(rare)
	p.drawChecks(odd)
	p.drawAims(odd)
	p.drawScribbles(odd)
	slices.SortStableFunc(p.Steps, func(a, b Step) int { return int(a.At - b.At) })
	return p
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

func spread(rng *rand.Rand, low, high time.Duration) time.Duration {
	return (low + time.Duration(rng.Int64N(int64(high-low)+1))).Round(time.Millisecond)
}

func oneIn(rng *rand.Rand, n int) bool { return rng.IntN(n) == 0 }

func (p *Plan) drawBoxes(rng *rand.Rand) {
	clusters := []string{"here", pick(rng, "here", "there")}
	bases := pick(rng, 0, 1, 1, 1, 2, 2) // none, all, some
	add := func(role mesh.Role) {
		p.Boxes = append(p.Boxes, BoxPlan{
			Name: boxName(len(p.Boxes)), Role: role, Cluster: pick(rng, clusters...), Key: len(p.Boxes),
			Base:     role != mesh.RoleRelay && (bases == 1 || bases == 2 && (role == mesh.RoleTrainer || oneIn(rng, 2))),
			BaseFile: oneIn(rng, 3),
		})
	}
	add(mesh.RoleTrainer)
	if oneIn(rng, 2) {
		add(mesh.RoleRelay)
	}
	for range 2 + rng.IntN(3) {
		add(mesh.RoleRollout)
		last := &p.Boxes[len(p.Boxes)-1]
		last.Lag, last.Manual = pick(rng, 0, 0, 0, 3), oneIn(rng, 5)
	}
	if oneIn(rng, 5) { // another trainer, later: with a key of its own, or with the same one, which is a mistake
		add(mesh.RoleTrainer)
		last := &p.Boxes[len(p.Boxes)-1]
		last.First = spread(rng, time.Second, p.Heal)
		if oneIn(rng, 2) {
			last.Key = 0
		}
	}
}

func (p *Plan) add(at time.Duration, d deed) { p.Steps = append(p.Steps, Step{at, d}) }

// trainers returns the machines that publish.
func (p *Plan) trainers() (list []int) {
	for i, b := range p.Boxes {
		if b.Role == mesh.RoleTrainer {
			list = append(list, i)
		}
	}
	return list
}

func (p *Plan) drawPublishes(rng *rand.Rand) {
	for _, who := range p.trainers() {
		pace := pick(rng, 5*time.Second, 15*time.Second, 40*time.Second)
		for at := p.Boxes[who].First + spread(rng, 0, 2*pace); at < p.Heal; at += spread(rng, time.Second, 2*pace) {
			p.add(at, p.drawPublish(rng, who))
			if oneIn(rng, 12) { // so many at once that what goes on in the background does not make way for all
				for range 3 + rng.IntN(5) {
					p.add(at, &publish{Who: who, Change: sparse, Seed: rng.Uint64()})
				}
			}
		}
	}
}

// drawConfirms has users confirm often, now and then, or never before the end.
func (p *Plan) drawConfirms(rng *rand.Rand) {
	for i, b := range p.Boxes {
		if !b.Manual {
			continue
		}
		pace := pick(rng, 5*time.Second, 30*time.Second, 2*p.Heal)
		for at := spread(rng, 0, pace); at < p.Heal; at += spread(rng, time.Second, pace) {
			p.add(at, &confirm{i})
		}
	}
}

func (p *Plan) drawPublish(rng *rand.Rand, who int) deed {
	if oneIn(rng, 12) {
		return &rewind{Who: who, Back: 1 + rng.IntN(5), Restart: oneIn(rng, 2)}
	}
	return &publish{
		Who: who, Change: pick(rng, sparse, sparse, sparse, sparse, sparse, undo, nothing, dense, pick(rng, sparse, reshape)),
		Full: oneIn(rng, 8), Seed: rng.Uint64(),
	}
}

// drawFaults picks for each run a few kinds of fault that come often, so that runs differ in kind.
func (p *Plan) drawFaults(rng *rand.Rand) {
	kinds := []func(*rand.Rand) deed{p.drawStop, p.drawStop, p.drawStopAtCall, p.drawStopAtCall, p.drawAil, p.drawFill, p.drawFlip,
		p.drawWire, p.drawWire, p.drawSplit, p.drawJump, p.drawPin, p.drawBadSync}
	rng.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	kinds = kinds[:1+rng.IntN(len(kinds))]
	pace := pick(rng, 8*time.Second, 20*time.Second, 60*time.Second)
	for at := spread(rng, 0, pace); at < p.Heal; at += spread(rng, 0, 2*pace) {
		d := pick(rng, kinds...)(rng)
		p.add(at, d)
		p.drawSequel(rng, at, d)
	}
	for range rng.IntN(3) { // seldom enough to leave most nodes believing what they hold
		at, d := spread(rng, p.Heal/4, p.Heal), p.drawRot(rng)
		p.add(at, d)
		p.drawSequel(rng, at, d)
	}
}

// drawRot has a bit flip that the next update on a rollout starts from, or that it goes back to.
func (p *Plan) drawRot(rng *rand.Rand) deed {
	return &flip{Who: p.someRollout(rng), What: pick(rng, liveSlot, liveSlot, idleSlot), Where: rng.Uint64()}
}

func (p *Plan) someRollout(rng *rand.Rand) int {
	for {
		if i := rng.IntN(len(p.Boxes)); p.Boxes[i].Role == mesh.RoleRollout {
			return i
		}
	}
}

// drawSequel adds what shows the harm of a fault, often enough.
func (p *Plan) drawSequel(rng *rand.Rand, at time.Duration, d deed) {
	switch d := d.(type) {
	case *ail: // what a failed sync has lost shows only now
		if d.Call == "sync" && oneIn(rng, 2) {
			p.add(at+spread(rng, time.Second, 30*time.Second), &stop{Who: d.Who, How: dark, Back: spread(rng, 0, 10*time.Second)})
		}
	case *flip: // what the next update starts from, or goes back to, is not what it was
		switch d.What {
		case liveSlot, theBase:
			p.add(at+spread(rng, 0, time.Second), &publish{Change: sparse, Seed: rng.Uint64()})
		case idleSlot:
			p.add(at+spread(rng, 0, time.Second), &publish{Change: undo})
		case aBlock: // found when somebody asks for it
		}
	case *stop: // in the midst of an update
		if d.AtCall > 0 && oneIn(rng, 2) {
			p.add(at, &publish{Change: sparse, Seed: rng.Uint64()})
		}
	}
}

// drawBadSync has the trainer's disk fail to write back what was given to it.
func (p *Plan) drawBadSync(rng *rand.Rand) deed {
	return &ail{Who: 0, Call: "sync", Skip: rng.IntN(12), Times: 1 + rng.IntN(3)}
}

func (p *Plan) drawStop(rng *rand.Rand) deed {
	d := &stop{
		Who: rng.IntN(len(p.Boxes)), How: pick(rng, politely, killed, killed, dark, dark),
		Back: pick(rng, 0, time.Second, spread(rng, time.Second, 20*time.Second), spread(rng, 20*time.Second, 100*time.Second)),
	}
	d.Wipe = oneIn(rng, 8)
	return d
}

func (p *Plan) drawStopAtCall(rng *rand.Rand) deed {
	d := &stop{Who: rng.IntN(len(p.Boxes)), How: pick(rng, killed, dark, dark), Back: spread(rng, 0, 10*time.Second)}
	if oneIn(rng, 3) {
		d.Who = 0
	}
	d.AtCall = 1 + rng.IntN(pick(rng, 30, 150, 600))
	return d
}

func (p *Plan) drawAil(rng *rand.Rand) deed {
	d := &ail{
		Who: rng.IntN(len(p.Boxes)), Call: pick(rng, "write", "sync", "syncdir", "rename", "create", "read", "remove", "reserve"),
		Skip: rng.IntN(20), Times: pick(rng, 1, 1, 3, 20),
	}
	d.Full = (d.Call == "write" || d.Call == "create" || d.Call == "reserve") && oneIn(rng, 2)
	return d
}

func (p *Plan) drawFill(rng *rand.Rand) deed {
	return &fill{Who: rng.IntN(len(p.Boxes)), Left: rng.Int64N(64 << 10), For: spread(rng, time.Second, 40*time.Second)}
}

func (p *Plan) drawFlip(rng *rand.Rand) deed {
	return &flip{Who: rng.IntN(len(p.Boxes)), What: pick(rng, aBlock, aBlock, idleSlot, liveSlot, liveSlot, theBase), Where: rng.Uint64()}
}

func (p *Plan) drawWire(rng *rand.Rand) deed {
	from := rng.IntN(len(p.Boxes))
	to := (from + 1 + rng.IntN(len(p.Boxes)-1)) % len(p.Boxes)
	return &wire{from, to, pick(rng, "cut", "hole", "one way", "refuse", "slow"), spread(rng, time.Second, time.Minute)}
}

func (p *Plan) drawSplit(rng *rand.Rand) deed {
	var side []int
	for i := range p.Boxes {
		if oneIn(rng, 2) {
			side = append(side, i)
		}
	}
	return &split{side, spread(rng, time.Second, time.Minute)}
}

// drawJump keeps trainers within the hour that others allow: a version of the far future can only be waited for.
func (p *Plan) drawJump(rng *rand.Rand) deed {
	d := &jump{Who: rng.IntN(len(p.Boxes)), By: pick(rng, 0, spread(rng, -50*time.Minute, 50*time.Minute))}
	if p.Boxes[d.Who].Role != mesh.RoleTrainer && oneIn(rng, 2) {
		d.By = spread(rng, -3*time.Hour, 3*time.Hour)
	}
	return d
}

func (p *Plan) drawPin(rng *rand.Rand) deed {
	who := rng.IntN(len(p.Boxes))
	if p.Boxes[who].Role != mesh.RoleRollout {
		who = len(p.Boxes) - 1
	}
	return &pin{Who: who, Back: rng.Uint64N(3), Off: oneIn(rng, 2)}
}

// headline is the plan in a line.
func (p *Plan) headline() string {
	return fmt.Sprintf("seed %d: %d machines, %d steps, faults until %s", p.Seed, len(p.Boxes), len(p.Steps), p.Heal)
}
