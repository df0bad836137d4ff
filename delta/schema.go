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

// Schema is what never changes between the versions of a state: its tensors, in the order of their names.
type Schema struct {
	tensors []Tensor
	encoded []byte
	id      cid.Cid
}

const maxNameLen = 1024

type schemaRecord struct {
	Version uint64         `cbor:"0,keyasint"`
	Tensors []tensorRecord `cbor:"1,keyasint"`
}

type tensorRecord struct {
	_     struct{} `cbor:",toarray"`
	Name  string
	DType string
	Shape []uint64
	Bytes uint64
}

// NewSchema returns the schema of tensors, which may come in any order.
func NewSchema(tensors []Tensor) (*Schema, error) {
	s := &Schema{tensors: slices.Clone(tensors)}
	slices.SortFunc(s.tensors, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	if err := s.validate(); err != nil {
		return nil, err
	}
	r := schemaRecord{Version: 1, Tensors: make([]tensorRecord, len(s.tensors))}
	for i, t := range s.tensors {
		r.Tensors[i] = tensorRecord{Name: t.Name, DType: t.DType, Shape: shapeOf(t), Bytes: uint64(t.Size)}
	}
	var err error
	if s.encoded, err = MarshalRecord(r); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if len(s.encoded) > MaxBlock {
		return nil, fmt.Errorf("schema: %d tensors take %d bytes to describe, at most %d", len(tensors), len(s.encoded), MaxBlock)
	}
	s.id = Sum(s.encoded)
	return s, nil
}

// shapeOf never returns nil, so that a 0-d tensor has one encoding.
func shapeOf(t Tensor) []uint64 {
	if t.Shape == nil {
		return []uint64{}
	}
	return t.Shape
}

// DecodeSchema reads what Encode returned and refuses everything else.
func DecodeSchema(b []byte) (*Schema, error) {
	if len(b) > MaxBlock {
		return nil, fmt.Errorf("schema: %d bytes, at most %d", len(b), MaxBlock)
	}
	var r schemaRecord
	if err := UnmarshalRecord(b, &r); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if r.Version != 1 {
		return nil, fmt.Errorf("schema: format %d, this build reads 1; upgrade sparsecast", r.Version)
	}
	s := &Schema{tensors: make([]Tensor, len(r.Tensors)), encoded: b, id: Sum(b)}
	for i, t := range r.Tensors {
		if t.Bytes > 1<<62 {
			return nil, fmt.Errorf("schema: tensor %q: %d bytes", t.Name, t.Bytes)
		}
		s.tensors[i] = Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Size: int64(t.Bytes)}
	}
	return s, s.validate()
}

// validate holds for every schema, ours or a peer's. The sizes of a peer's schema must follow from its dtypes and
// shapes, and their sum must fit, since files are laid out by them.
func (s *Schema) validate() error {
	var total uint64
	for i, t := range s.tensors {
		if len(t.Name) > maxNameLen || len(t.DType) > 64 || len(t.Shape) > 64 {
			return fmt.Errorf("schema: tensor %d: name, dtype or shape too long", i)
		}
		if i > 0 && s.tensors[i-1].Name >= t.Name {
			return fmt.Errorf("schema: tensor %q: doubled or out of order", t.Name)
		}
		if err := checkSize(t); err != nil {
			return fmt.Errorf("schema: tensor %q: %w", t.Name, err)
		}
		if total += uint64(t.Size); total > 1<<62 {
			return fmt.Errorf("schema: more than 2^62 bytes in all")
		}
	}
	return nil
}

func checkSize(t Tensor) error {
	if t.Size < 0 {
		return fmt.Errorf("%d bytes", t.Size)
	}
	bits, known := safetensors.BitWidth(t.DType)
	if !known {
		return nil
	}
	n := uint64(t.Size) * 8
	if t.Size >= 1<<60 || n%uint64(bits) != 0 {
		return fmt.Errorf("%d bytes do not hold whole elements of %s", t.Size, t.DType)
	}
	n /= uint64(bits)
	product := uint64(1)
	for _, d := range t.Shape {
		if d != 0 && product > (1<<62)/d {
			return fmt.Errorf("shape %v is too large", t.Shape)
		}
		product *= d
	}
	if product != n {
		return fmt.Errorf("shape %v of %s does not take %d bytes", t.Shape, t.DType, t.Size)
	}
	return nil
}

// Tensors returns the tensors in the order of their names. The caller must not change them.
func (s *Schema) Tensors() []Tensor { return s.tensors }

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
