package delta

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
)

const (
	// maxGroups and maxPieces bound what a schema is cut into, maxCoordinates the numbers that describe its boxes.
	maxGroups      = 1 << 16
	maxPieces      = 1 << 20
	maxCoordinates = 1 << 22
	// maxCuts bounds the pieces of one tensor.
	maxCuts = 1 << 14
)

// Piece is a rectangular box of a tensor, usually all of it, coded as one row-major array.
type Piece struct {
	Tensor        int
	Group         int
	Start, Extent []uint64 // of the box along every dimension; nil for the whole tensor
	size          int64    // bytes
	block         int      // number of its first block
	box           *box     // where its bytes lie; nil for the whole tensor
}

// Bytes returns the size of p.
func (p Piece) Bytes() int64 { return p.size }

// sortedIndex returns the first of n indices for which after holds; it must hold for all beyond.
func sortedIndex(n int, after func(i int) bool) int { return sort.Search(n, after) }

// cutUp asks cut about every tensor and sets pieces, in the order of tensor and start, and groups.
func (s *Schema) cutUp(cut Cutting) {
	var names []string // of the groups of the pieces
	for _, st := range s.states {
		for t := st.First; t < st.First+st.Count; t++ {
			cuts := cut(st.Name, s.tensors[t])
			if len(cuts) == 0 {
				cuts = []Cut{{}}
			}
			cuts = slices.Clone(cuts)
			slices.SortStableFunc(cuts, func(a, b Cut) int { return slices.Compare(a.Start, b.Start) })
			for _, c := range cuts {
				p := Piece{Tensor: t, Start: slices.Clone(c.Start), Extent: slices.Clone(c.Extent)}
				if len(cuts) == 1 && (c.Start == nil || wholeBox(s.tensors[t], c)) {
					p.Start, p.Extent = nil, nil
				}
				s.pieces = append(s.pieces, p)
				names = append(names, c.Group)
			}
		}
	}
	s.groups = slices.Compact(slices.Sorted(slices.Values(names)))
	if len(s.groups) == 0 {
		s.groups = []string{""}
	}
	for i, name := range names {
		s.pieces[i].Group, _ = slices.BinarySearch(s.groups, name)
	}
}

func wholeBox(t Tensor, c Cut) bool {
	return !slices.ContainsFunc(c.Start, func(x uint64) bool { return x != 0 }) && slices.Equal(c.Extent, t.Shape)
}

// place checks the pieces, which stand in the order of tensor and start, finds where their bytes lie, and brings
// them into the order of the stream.
func (s *Schema) place() error {
	for i := 0; i < len(s.pieces); {
		n := i + 1
		for n < len(s.pieces) && s.pieces[n].Tensor == s.pieces[i].Tensor {
			n++
		}
		t := s.tensors[s.pieces[i].Tensor]
		if err := placeAll(t, s.pieces[i:n]); err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		i = n
	}
	slices.SortStableFunc(s.pieces, func(a, b Piece) int { return cmp.Compare(a.Group, b.Group) })
	blocks := uint64(0)
	for i := range s.pieces {
		p := &s.pieces[i]
		p.block = int(blocks)
		most := uint64(BlockWords * codingOf(s.tensors[p.Tensor].DType).width)
		blocks += (uint64(p.size) + most - 1) / most // no overflow: at most 2^62 bytes in all
	}
	s.blocks = int(blocks)
	return nil
}

// placeAll checks and places the pieces of one tensor.
func placeAll(t Tensor, pieces []Piece) error {
	if len(pieces) == 1 && pieces[0].Start == nil {
		pieces[0].size = t.Size
		return nil
	}
	if len(pieces) == 1 {
		return errors.New("one piece that is not the whole")
	}
	width := elementBytes(t.DType)
	if width == 0 {
		return fmt.Errorf("dtype %s cannot be cut: its elements are not known, or less than a byte", t.DType)
	}
	if err := checkTiling(t.Shape, pieces); err != nil {
		return err
	}
	for i := range pieces {
		p := &pieces[i]
		p.size = width
		for _, n := range p.Extent {
			p.size *= int64(n)
		}
		p.box = newBox(t.Shape, p.Start, p.Extent, width)
	}
	return nil
}
