package bench

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/sparsecast/sparsecast/cmd/sparsecast/policy"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/delta/safetensors"
)

// madeUp are the states of a policy that package policy makes up, all of them in memory.
type madeUp []*delta.Memory

// makeUp makes a policy and one update of it.
func makeUp(ctx context.Context, spec policy.Spec, progress func(done, of int64)) (madeUp, error) {
	p, err := policy.New(spec)
	if err != nil {
		return nil, err
	}
	schema, err := delta.NewSchema(p.Tensors())
	if err != nil {
		return nil, err
	}
	var made madeUp
	var sinks []policy.Sink
	for range p.States() {
		m := delta.NewMemory(schema)
		made, sinks = append(made, m), append(sinks, renumbered{m, numbers(p.Tensors(), schema)})
	}
	all := p.Bytes() * int64(p.States())
	return made, p.Write(ctx, sinks, func(done int64) { progress(done, all) })
}

// renumbered is a state whose tensors go by the numbers that a policy has for them; in a schema they are sorted.
type renumbered struct {
	*delta.Memory
	in []int
}

// WriteAt stores bytes of a tensor of the policy.
func (r renumbered) WriteAt(t int, p []byte, off int64) error {
	return r.Memory.WriteAt(r.in[t], p, off)
}

// numbers returns the number in schema of each tensor.
func numbers(tensors []safetensors.Tensor, schema *delta.Schema) []int {
	in := make([]int, len(tensors))
	for i, t := range tensors {
		in[i], _ = slices.BinarySearchFunc(schema.Tensors(), t.Name, func(t delta.Tensor, name string) int { return strings.Compare(t.Name, name) })
	}
	return in
}

func (m madeUp) names() []string {
	names := make([]string, len(m))
	for i := range m {
		names[i] = strconv.Itoa(i)
	}
	return names
}

func (m madeUp) load(_ context.Context, i int) (*delta.Memory, error) { return m[i], nil }

func (m madeUp) fileBytes(i int) (uint64, error) { return m[i].Schema().Bytes(), nil }
