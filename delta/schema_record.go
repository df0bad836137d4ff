package delta

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// schemaVersion is the format of the record.
const schemaVersion = 2

// schemaRecord is a Schema on the wire. What a schema of one state without a name, of whole tensors in one group,
// does not need is left out. See doc.go for Cuts and Members.
type schemaRecord struct {
	Version uint64         `cbor:"0,keyasint"`
	Tensors []tensorRecord `cbor:"1,keyasint"`
	States  []stateRecord  `cbor:"2,keyasint,omitempty"`
	Groups  []string       `cbor:"3,keyasint,omitempty"`
	Cuts    []byte         `cbor:"4,keyasint,omitempty"`
	Members []byte         `cbor:"5,keyasint,omitempty"`
}

type tensorRecord struct {
	_     struct{} `cbor:",toarray"`
	Name  string
	DType string
	Shape []uint64
	Bytes uint64
}

type stateRecord struct {
	_       struct{} `cbor:",toarray"`
	Name    string
	Tensors uint64
}

// record returns s as it is written. The pieces stand in the order of tensor and start.
func (s *Schema) record() schemaRecord {
	r := schemaRecord{Version: schemaVersion, Tensors: make([]tensorRecord, len(s.tensors))}
	for i, t := range s.tensors {
		r.Tensors[i] = tensorRecord{Name: t.Name, DType: t.DType, Shape: shapeOf(t), Bytes: uint64(t.Size)}
	}
	if len(s.states) != 1 || s.states[0].Name != "" {
		for _, st := range s.states {
			r.States = append(r.States, stateRecord{Name: st.Name, Tensors: uint64(st.Count)})
		}
	}
	if len(s.groups) != 1 || s.groups[0] != "" {
		r.Groups = s.groups
	}
	if len(s.groups) > 1 {
		for _, p := range s.pieces {
			r.Members = binary.AppendUvarint(r.Members, uint64(p.Group))
		}
	}
	r.Cuts = appendCuts(nil, s.pieces)
	return r
}

// appendCuts writes the boxes of every tensor of more than one piece.
func appendCuts(b []byte, pieces []Piece) []byte {
	last := -1
	for i := 0; i < len(pieces); {
		n := i + 1
		for n < len(pieces) && pieces[n].Tensor == pieces[i].Tensor {
			n++
		}
		if n > i+1 {
			b = binary.AppendUvarint(b, uint64(pieces[i].Tensor-last-1))
			b = binary.AppendUvarint(b, uint64(n-i))
			for _, p := range pieces[i:n] {
				for d := range p.Start {
					b = binary.AppendUvarint(b, p.Start[d])
					b = binary.AppendUvarint(b, p.Extent[d])
				}
			}
			last = pieces[i].Tensor
		}
		i = n
	}
	return b
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
	s, err := decodeSchema(b)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return s, nil
}

func decodeSchema(b []byte) (*Schema, error) {
	if len(b) > MaxBlock {
		return nil, fmt.Errorf("%d bytes, at most %d", len(b), MaxBlock)
	}
	var r schemaRecord
	if err := unmarshalVersion(b, &r, schemaVersion); err != nil {
		return nil, err
	}
	s := &Schema{tensors: make([]Tensor, len(r.Tensors)), groups: r.Groups}
	for i, t := range r.Tensors {
		if t.Bytes > 1<<62 {
			return nil, fmt.Errorf("tensor %q: %d bytes", t.Name, t.Bytes)
		}
		s.tensors[i] = Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Size: int64(t.Bytes)}
	}
	if len(s.groups) == 0 {
		s.groups = []string{""}
	}
	if err := s.readStates(r.States); err != nil {
		return nil, err
	}
	if err := s.readPieces(r.Cuts, r.Members); err != nil {
		return nil, err
	}
	if err := s.settle(); err != nil {
		return nil, err
	}
	if !bytes.Equal(s.encoded, b) {
		return nil, errors.New("not in canonical form")
	}
	return s, nil
}

func (s *Schema) readStates(records []stateRecord) error {
	if len(records) == 0 {
		s.states = []StateRange{{Count: len(s.tensors)}}
		return nil
	}
	first := 0
	for _, r := range records {
		if r.Tensors > uint64(len(s.tensors)-first) {
			return errors.New("states of more tensors than there are")
		}
		s.states = append(s.states, StateRange{Name: r.Name, First: first, Count: int(r.Tensors)})
		first += int(r.Tensors)
	}
	if first != len(s.tensors) {
		return errors.New("tensors of no state")
	}
	return nil
}

// readPieces lists the pieces in the order of tensor and start.
func (s *Schema) readPieces(cuts, members []byte) error {
	in, coordinates := cursor{cuts}, 0
	next, n, err := nextCut(&in, -1, len(s.tensors))
	if err != nil {
		return err
	}
	s.pieces = make([]Piece, 0, len(s.tensors))
	for t := range s.tensors {
		if t != next {
			s.pieces = append(s.pieces, Piece{Tensor: t})
			continue
		}
		rank := len(s.tensors[t].Shape)
		coordinates += n * rank
		if coordinates > maxCoordinates || len(s.pieces)+n > maxPieces || n*rank > len(in.rest) {
			return errors.New("more pieces than a schema may have")
		}
		for range n {
			p, err := readBox(&in, t, rank)
			if err != nil {
				return err
			}
			s.pieces = append(s.pieces, p)
		}
		if next, n, err = nextCut(&in, t, len(s.tensors)); err != nil {
			return err
		}
	}
	return s.readMembers(members)
}

// nextCut reads which tensor after last is cut, and into how many pieces; -1 if none is.
func nextCut(in *cursor, last, tensors int) (t, n int, err error) {
	if len(in.rest) == 0 {
		return -1, 0, nil
	}
	skip, err := in.count(tensors)
	if err != nil || last+1+skip >= tensors {
		return 0, 0, errors.New("cut of no tensor")
	}
	n, err = in.count(maxCuts)
	if err != nil || n < 2 {
		return 0, 0, fmt.Errorf("tensor %d: want 2 to %d pieces", last+1+skip, maxCuts)
	}
	return last + 1 + skip, n, nil
}

func readBox(in *cursor, t, rank int) (Piece, error) {
	numbers := make([]uint64, 2*rank)
	p := Piece{Tensor: t, Start: numbers[:rank:rank], Extent: numbers[rank:]}
	for d := range rank {
		var err error
		if p.Start[d], err = in.uvarint(); err != nil {
			return p, err
		}
		if p.Extent[d], err = in.uvarint(); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (s *Schema) readMembers(members []byte) error {
	if len(s.groups) == 1 {
		if len(members) > 0 {
			return errors.New("members of one group only")
		}
		return nil
	}
	in := cursor{members}
	for i := range s.pieces {
		g, err := in.count(len(s.groups) - 1)
		if err != nil {
			return fmt.Errorf("members: %w", err)
		}
		s.pieces[i].Group = g
	}
	if len(in.rest) > 0 {
		return errors.New("members: more than pieces")
	}
	return nil
}

// settle checks what holds for every schema, ours or a peer's, and completes it.
func (s *Schema) settle() error {
	if err := s.validate(); err != nil {
		return err
	}
	var err error
	if s.encoded, err = MarshalRecord(s.record()); err != nil {
		return err
	}
	if len(s.encoded) > MaxBlock {
		return fmt.Errorf("%d tensors in %d pieces take %d bytes to describe, at most %d",
			len(s.tensors), len(s.pieces), len(s.encoded), MaxBlock)
	}
	s.id = Sum(s.encoded)
	s.groups = slices.Clip(s.groups)
	return s.place()
}
