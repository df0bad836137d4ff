package delta

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta/safetensors"
)

// Tensor describes one tensor of a state: its name, dtype as the checkpoint spells it, shape, and size in bytes.
type Tensor = safetensors.Tensor

// Schema is what never changes between versions: the named states that move as one version, their tensors, and the
// pieces and groups that those are cut into. Tensors are numbered through all states, in the order of state and name.
type Schema struct {
	tensors []Tensor
	states  []StateRange
	groups  []string
	pieces  []Piece // in the order of the stream: by group, tensor and start
	blocks  int
	encoded []byte
	id      cid.Cid
}

// StateTensors is a state as a schema is made of it: policy, draft model, adapter. The only state of a version
// usually has no name.
type StateTensors struct {
	Name    string
	Tensors []Tensor
}

// StateRange says which of the tensors of a schema are those of one state.
type StateRange struct {
	Name  string
	First int // index of its first tensor
	Count int
}

// Cutting says how a tensor of a state is cut into pieces, which must fill it without overlap. Nil leaves it whole
// in the group without a name.
type Cutting func(state string, t Tensor) []Cut

// Cut is one piece of a tensor as a Cutting asks for it: a box, from Start on, Extent elements along every dimension,
// or the whole tensor where both are nil.
type Cut struct {
	Group         string
	Start, Extent []uint64
}

// NewSchema returns the schema of one state without a name, whose tensors may come in any order, each of them one
// piece, all in one group.
func NewSchema(tensors []Tensor) (*Schema, error) {
	return NewSchemaOf([]StateTensors{{Tensors: tensors}}, nil)
}

// NewSchemaOf returns the schema of several states, cut as cut says; nil leaves all tensors whole in one group.
func NewSchemaOf(states []StateTensors, cut Cutting) (*Schema, error) {
	s := &Schema{}
	states = slices.Clone(states)
	slices.SortFunc(states, func(a, b StateTensors) int { return strings.Compare(a.Name, b.Name) })
	for _, st := range states {
		s.states = append(s.states, StateRange{Name: st.Name, First: len(s.tensors), Count: len(st.Tensors)})
		s.tensors = append(s.tensors, st.Tensors...)
		own := s.tensors[len(s.tensors)-len(st.Tensors):]
		slices.SortFunc(own, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	}
	if cut == nil {
		cut = func(string, Tensor) []Cut { return nil }
	}
	s.cutUp(cut)
	if err := s.settle(); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return s, nil
}

// Tensors returns the tensors in the order of state and name. The caller must not change them.
func (s *Schema) Tensors() []Tensor { return s.tensors }

// States returns the states in the order of their names. The caller must not change them.
func (s *Schema) States() []StateRange { return s.states }

// StateOf returns the index into States of the state that tensor t belongs to.
func (s *Schema) StateOf(t int) int {
	return sortedIndex(len(s.states), func(i int) bool { return s.states[i].First+s.states[i].Count > t })
}

// Groups returns the names of the groups, in order. The caller must not change them.
func (s *Schema) Groups() []string { return s.groups }

// Pieces returns the pieces in the order of the stream: by group, tensor and start. The caller must not change them.
func (s *Schema) Pieces() []Piece { return s.pieces }

// Encode returns the canonical bytes of s. The caller must not change them.
func (s *Schema) Encode() []byte { return s.encoded }

// ID names the schema by its content.
func (s *Schema) ID() cid.Cid { return s.id }

// Bytes returns the size of a state under s.
func (s *Schema) Bytes() uint64 {
	var n uint64
	for _, t := range s.tensors {
		n += uint64(t.Size)
	}
	return n
}

// Elements returns the number of words that a state under s consists of.
func (s *Schema) Elements() uint64 {
	var n uint64
	for _, t := range s.tensors {
		n += uint64(t.Size) / uint64(codingOf(t.DType).width)
	}
	return n
}

// Blocks returns the number of blocks of a state under s. They are numbered in the order of the stream.
func (s *Schema) Blocks() int { return s.blocks }

// GroupBlocks returns the blocks of group g: from first on, up to and without end.
func (s *Schema) GroupBlocks(g int) (first, end int) {
	at := sortedIndex(len(s.pieces), func(i int) bool { return s.pieces[i].Group >= g })
	to := sortedIndex(len(s.pieces), func(i int) bool { return s.pieces[i].Group > g })
	return s.firstBlock(at), s.firstBlock(to)
}

// firstBlock returns the number of the first block of piece i, or of what would follow the last piece.
func (s *Schema) firstBlock(i int) int {
	if i == len(s.pieces) {
		return s.blocks
	}
	return s.pieces[i].block
}
