package policy

import (
	"fmt"
	"slices"

	"github.com/sparsecast/sparsecast/delta/safetensors"
)

const (
	// MinBytes and MaxBytes bound the size of a state.
	MinBytes = 1_000_000
	MaxBytes = 1 << 40
	// MaxUpdates bounds the number of updates after the base.
	MaxUpdates = 100_000
	// MaxLR bounds the learning rate. Reinforcement learning uses 1e-7 to 1e-5.
	MaxLR = 0.01
)

// Spec says which policy to make. Equal specs give equal bytes on every machine.
type Spec struct {
	Bytes   int64   // size of one state; what comes out is within 2 % of it
	Updates int     // states after the base
	LR      float64 // Adam's learning rate; 1e-6 to 3e-6 changes 1 to 3 % of the elements
	Seed    uint64  // another seed gives another policy of the same shape
}

// Policy is a policy and its updates, computed while they are written.
type Policy struct {
	spec    Spec
	tensors []tensor
	blocks  int64 // of all tensors
	bytes   int64 // of one state
}

// New checks s and lays the tensors out. No weights are computed yet.
func New(s Spec) (*Policy, error) {
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	p := &Policy{spec: s}
	for i, l := range choose(s.Bytes / 2).layouts() {
		t := newTensor(s.Seed, i, l, p.blocks)
		p.tensors = append(p.tensors, t)
		p.blocks += t.blocks()
		p.bytes += 2 * l.elements()
	}
	return p, nil
}

func (s Spec) validate() error {
	switch {
	case s.Bytes < MinBytes || s.Bytes > MaxBytes:
		return fmt.Errorf("size of %d bytes: give one from %d (1 MB) to %d (1 TiB)", s.Bytes, MinBytes, int64(MaxBytes))
	case s.Updates < 0 || s.Updates > MaxUpdates:
		return fmt.Errorf("%d updates: give a number from 0 to %d", s.Updates, MaxUpdates)
	case !(s.LR >= 0 && s.LR <= MaxLR): // so written that NaN fails
		return fmt.Errorf("learning rate %g: give one from 0 to %g, such as 1e-6", s.LR, MaxLR)
	}
	return nil
}

// Bytes returns the size of the weights of one state, without a file's header.
func (p *Policy) Bytes() int64 { return p.bytes }

// States returns how many states there are: the base and one for each update.
func (p *Policy) States() int { return p.spec.Updates + 1 }

// Tensors lists the tensors of every state, in the order by which Write numbers them. The caller owns the result.
func (p *Policy) Tensors() []safetensors.Tensor {
	ts := make([]safetensors.Tensor, len(p.tensors))
	for i, t := range p.tensors {
		shape := []uint64{uint64(t.rows), uint64(t.cols)}
		if t.kind == norm {
			shape = slices.Delete(shape, 0, 1)
		}
		ts[i] = safetensors.Tensor{Name: t.name, DType: "BF16", Shape: shape, Size: 2 * t.elements()}
	}
	return ts
}
