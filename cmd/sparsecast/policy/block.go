package policy

import (
	"encoding/binary"
	"math"
)

// Adam's constants, those of every RL trainer that we know.
const (
	beta1   = 0.9
	beta2   = 0.999
	epsilon = 1e-8
)

// Where the moments of a long run lie, in units of the gradient noise: averages of noise with those memories.
const (
	driftSpread  = 0.23       // of the elements' mean gradients
	firstSpread  = 0.22941573 // sqrt((1-beta1) / (1+beta1))
	secondSpread = 0.03       // about sqrt(2 (1-beta2) / (1+beta2))
)

// block is the optimizer state of one block of elements. A worker reuses one for all its blocks.
type block struct {
	n                   int // elements in use
	spans               []span
	master, drift, m, v [blockLen]float32
	rounded             [2 * blockLen]byte
}

// span is the part of a block that lies in one row.
type span struct {
	from, to int
	weight   float32
	unused   bool
}

// start sets b to block number of t before the first update.
func (b *block) start(t *tensor, number int64) {
	b.place(t, number)
	r := t.random(keyStart, uint64(number))
	for _, s := range b.spans {
		for i := s.from; i < s.to; i++ {
			b.master[i] = t.initial(&r, s.weight)
			b.warm(i, t.gradient, &r)
		}
	}
}

// place finds the elements and rows of block number of t.
func (b *block) place(t *tensor, number int64) {
	from := number * blockLen
	b.n = int(min(blockLen, t.elements()-from))
	b.spans = b.spans[:0]
	for at := 0; at < b.n; {
		row := (from + int64(at)) / t.cols
		s := span{from: at, to: int(min(int64(b.n), (row+1)*t.cols-from))}
		s.weight, s.unused = t.row(row)
		b.spans = append(b.spans, s)
		at = s.to
	}
}

// initial draws a master weight.
func (t *tensor) initial(r *random, spread float32) float32 {
	if t.kind == norm {
		return 1 + float32(normSpread*r.fine())
	}
	return spread * r.fine()
}

// warm draws the drift of element i and the moments that a long run with it has reached.
func (b *block) warm(i int, gradient float32, r *random) {
	d := float32(driftSpread * r.rough())
	power := float32(gradient*gradient) * (1 + float32(d*d))
	b.drift[i] = d
	b.m[i] = gradient * (d + float32(firstSpread*r.rough()))
	b.v[i] = power * (1 + float32(secondSpread*r.rough()))
}

// update moves the masters by one step of Adam. Every product that is added to something is converted on its own,
// which forbids fused multiply-adds: they exist on some machines only.
func (b *block) update(lr, gradient float32, r random) {
	for _, s := range b.spans {
		if s.unused {
			continue
		}
		master, drift, m, v := b.master[s.from:s.to], b.drift[s.from:s.to], b.m[s.from:s.to], b.v[s.from:s.to]
		for i, d := range drift {
			g := gradient * (d + r.rough())
			m[i] = float32(beta1*m[i]) + float32((1-beta1)*g)
			v[i] = float32(beta2*v[i]) + float32((1-beta2)*float32(g*g))
			master[i] -= float32(lr*m[i]) / (float32(math.Sqrt(float64(v[i]))) + epsilon)
		}
	}
}

// round returns the masters in bf16. The bytes are good until the next call.
func (b *block) round() []byte {
	out := b.rounded[:2*b.n]
	for i, x := range b.master[:b.n] {
		binary.LittleEndian.PutUint16(out[2*i:], bf16(x))
	}
	return out
}
