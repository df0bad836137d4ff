package delta

import (
	"fmt"
	"slices"
)

// Bundle is a State made of the states that a schema names. It says under which schema they move, too: a checkpoint
// knows only of whole tensors in one group until it is bundled under a schema that cuts them.
type Bundle struct {
	schema *Schema
	states []State // in the order of the schema
}

// NewBundle puts states under schema, which must name just them and their tensors.
func NewBundle(schema *Schema, states map[string]State) (*Bundle, error) {
	if len(states) != len(schema.states) {
		return nil, fmt.Errorf("bundle: %d states, the schema has %d", len(states), len(schema.states))
	}
	b := &Bundle{schema: schema}
	for _, r := range schema.states {
		s := states[r.Name]
		if s == nil {
			return nil, fmt.Errorf("bundle: state %q is missing", r.Name)
		}
		if !slices.EqualFunc(s.Schema().Tensors(), schema.tensors[r.First:r.First+r.Count], sameTensor) {
			return nil, fmt.Errorf("bundle: state %q has other tensors, shapes or dtypes than the schema", r.Name)
		}
		b.states = append(b.states, s)
	}
	return b, nil
}

func sameTensor(a, b Tensor) bool {
	return a.Name == b.Name && a.DType == b.DType && a.Size == b.Size && slices.Equal(a.Shape, b.Shape)
}

// Schema returns the schema of all states.
func (b *Bundle) Schema() *Schema { return b.schema }

// ReadAt reads from the state that tensor t belongs to.
func (b *Bundle) ReadAt(t int, p []byte, off int64) error {
	i := b.schema.StateOf(t)
	return b.states[i].ReadAt(t-b.schema.states[i].First, p, off)
}

// BundleSink is a Sink made of one sink for every state that a schema names.
type BundleSink struct {
	schema *Schema
	sinks  []Sink
}

// NewBundleSink puts sinks under schema, which must name just them. Each numbers its tensors as they stand in its
// own state, in the order of names.
func NewBundleSink(schema *Schema, sinks map[string]Sink) (*BundleSink, error) {
	if len(sinks) != len(schema.states) {
		return nil, fmt.Errorf("bundle: %d sinks, the schema has %d states", len(sinks), len(schema.states))
	}
	b := &BundleSink{schema: schema}
	for _, r := range schema.states {
		if sinks[r.Name] == nil {
			return nil, fmt.Errorf("bundle: the sink of state %q is missing", r.Name)
		}
		b.sinks = append(b.sinks, sinks[r.Name])
	}
	return b, nil
}

// WriteAt writes to the sink of the state that tensor t belongs to.
func (b *BundleSink) WriteAt(t int, p []byte, off int64) error {
	i := b.schema.StateOf(t)
	return b.sinks[i].WriteAt(t-b.schema.states[i].First, p, off)
}

// StateSchema returns the schema of state i alone, as one without a name, whole and in one group: that of the
// checkpoint which holds it.
func (s *Schema) StateSchema(i int) (*Schema, error) {
	r := s.states[i]
	return NewSchema(s.tensors[r.First : r.First+r.Count])
}
