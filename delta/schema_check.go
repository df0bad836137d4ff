package delta

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/sparsecast/sparsecast/delta/safetensors"
)

const (
	maxNameLen = 1024
	maxTensors = 1 << 20
	maxStates  = 256
)

// validate reports the first rule that the names, sizes and counts of s break.
func (s *Schema) validate() error {
	if len(s.tensors) > maxTensors || len(s.groups) > maxGroups || len(s.pieces) > maxPieces {
		return fmt.Errorf("%d tensors, %d groups, %d pieces: at most %d, %d, %d",
			len(s.tensors), len(s.groups), len(s.pieces), maxTensors, maxGroups, maxPieces)
	}
	if err := s.validateStates(); err != nil {
		return err
	}
	if err := s.validateGroups(); err != nil {
		return err
	}
	var total uint64
	for i, t := range s.tensors {
		if err := checkTensor(t); err != nil {
			return fmt.Errorf("tensor %d, %.100q: %w", i, t.Name, err)
		}
		if total += uint64(t.Size); total > 1<<62 {
			return fmt.Errorf("more than 2^62 bytes in all")
		}
	}
	return nil
}

func (s *Schema) validateStates() error {
	if len(s.states) == 0 || len(s.states) > maxStates {
		return fmt.Errorf("%d states, want 1 to %d", len(s.states), maxStates)
	}
	for i, st := range s.states {
		if st.Name != "" || len(s.states) > 1 {
			if err := checkLocalName(st.Name); err != nil {
				return fmt.Errorf("state %d: %w", i, err)
			}
		}
		if i > 0 && s.states[i-1].Name >= st.Name {
			return fmt.Errorf("state %q: doubled or out of order", st.Name)
		}
		own := s.tensors[st.First : st.First+st.Count]
		for k := 1; k < len(own); k++ {
			if own[k-1].Name >= own[k].Name {
				return fmt.Errorf("tensor %.100q: doubled or out of order", own[k].Name)
			}
		}
	}
	return nil
}

func (s *Schema) validateGroups() error {
	for i, name := range s.groups {
		if len(name) > maxNameLen || !utf8.ValidString(name) {
			return fmt.Errorf("group %d: name too long, or not UTF-8", i)
		}
		if i > 0 && s.groups[i-1] >= name {
			return fmt.Errorf("group %.100q: doubled or out of order", name)
		}
	}
	used := make([]bool, len(s.groups))
	for _, p := range s.pieces {
		used[p.Group] = true
	}
	for g, u := range used {
		if !u && len(s.pieces) > 0 {
			return fmt.Errorf("group %.100q has no piece", s.groups[g])
		}
	}
	if len(s.pieces) == 0 && (len(s.groups) != 1 || s.groups[0] != "") {
		return errors.New("groups of no piece")
	}
	return nil
}

// checkTensor makes sure that the size of a tensor follows from its dtype and shape, since files are laid out by it.
func checkTensor(t Tensor) error {
	if len(t.Name) > maxNameLen || len(t.DType) > 64 || len(t.Shape) > 64 {
		return errors.New("name, dtype or shape too long")
	}
	if !utf8.ValidString(t.Name) || !utf8.ValidString(t.DType) {
		return errors.New("name or dtype is not UTF-8")
	}
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

// elementBytes returns the bytes of an element of a dtype, zero where it is not known or less than one.
func elementBytes(dtype string) int64 {
	bits, known := safetensors.BitWidth(dtype)
	if !known || bits%8 != 0 {
		return 0
	}
	return int64(bits / 8)
}
