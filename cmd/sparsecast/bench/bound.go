package bench

import (
	"maps"
	"math"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

// bound returns the bytes that the changes of a pair take at least; see the package comment.
func bound(p pair) float64 {
	tensors := slices.Collect(p.tensors())
	bits := make([]float64, len(tensors))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, t := range tensors {
		g.Go(func() error {
			bits[i] = t.bound()
			return nil
		})
	}
	_ = g.Wait() // none fails
	var sum float64
	for _, b := range bits {
		sum += b
	}
	return sum / 8
}

// class is what is counted of the words of one exponent.
type class struct {
	words, changed uint64
	steps          map[int64]uint64
}

// bound returns the bits that the changes of a tensor take at least.
func (t tensor) bound() (bits float64) {
	classes := make([]class, 1<<t.exponent)
	for i := range t.words(t.old) {
		classes[t.class(t.word(t.old, i))].words++
	}
	for i := range t.changed() {
		old := t.word(t.old, i)
		classes[t.class(old)].count(t.step(old, t.word(t.new, i)))
	}
	for _, c := range classes {
		bits += c.bound()
	}
	return bits
}

func (c *class) count(step int64) {
	if c.steps == nil {
		c.steps = make(map[int64]uint64)
	}
	c.changed++
	c.steps[step]++
}

// bound returns n·H(k/n) for the places and k times the entropy of the steps.
func (c *class) bound() float64 {
	bits := surprise(c.changed, c.words) + surprise(c.words-c.changed, c.words)
	for _, n := range slices.Sorted(maps.Values(c.steps)) { // sorted, so that the sum is the same every time
		bits += surprise(n, c.changed)
	}
	return bits
}

// surprise returns the bits of k events that have a chance of k in n each.
func surprise(k, n uint64) float64 {
	if k == 0 {
		return 0
	}
	return float64(k) * math.Log2(float64(n)/float64(k))
}
