package delta

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// maxCutDims bounds the dimensions that one tensor may be cut along.
const maxCutDims = 4

// corner is a corner of a box, in the dimensions that the tensor is cut along.
type corner struct {
	at   [maxCutDims]uint64
	sign int
}

// checkTiling reports whether the boxes, in the order of their starts, fill a tensor of this shape without overlap.
//
// A function on a grid that is zero far out is known from its mixed difference, the difference along one dimension
// after the other. That of a box is +1 or -1 at each of its corners and zero elsewhere. So the boxes add up to the
// tensor, each element once, just when all their corners cancel out against those of the tensor.
func checkTiling(shape []uint64, boxes []Piece) error {
	if len(boxes) > maxCuts {
		return fmt.Errorf("%d pieces, at most %d", len(boxes), maxCuts)
	}
	for i, b := range boxes {
		if err := checkBox(shape, b); err != nil {
			return fmt.Errorf("piece %d: %w", i, err)
		}
		if i > 0 && slices.Compare(boxes[i-1].Start, b.Start) >= 0 {
			return fmt.Errorf("piece %d: begins where another does, or out of order", i)
		}
	}
	dims := cutDims(shape, boxes)
	if len(dims) > maxCutDims {
		return fmt.Errorf("cut along %d dimensions, at most %d", len(dims), maxCutDims)
	}
	corners := make([]corner, 0, (len(boxes)+1)<<len(dims))
	for _, b := range boxes {
		corners = appendCorners(corners, dims, b.Start, b.Extent, 1)
	}
	corners = appendCorners(corners, dims, make([]uint64, len(shape)), shape, -1)
	slices.SortFunc(corners, func(a, b corner) int { return slices.Compare(a.at[:], b.at[:]) })
	for i := 0; i < len(corners); {
		sum, at := 0, corners[i].at
		for ; i < len(corners) && corners[i].at == at; i++ {
			sum += corners[i].sign
		}
		if sum != 0 {
			return fmt.Errorf("the pieces overlap or leave a hole, near element %d of the dimensions %d", at[:len(dims)], dims)
		}
	}
	return nil
}

func checkBox(shape []uint64, b Piece) error {
	if len(b.Start) != len(shape) || len(b.Extent) != len(shape) {
		return fmt.Errorf("a box of %d and %d dimensions in a tensor of %d", len(b.Start), len(b.Extent), len(shape))
	}
	for d, n := range b.Extent {
		if n == 0 || n > shape[d] || b.Start[d] > shape[d]-n {
			return errors.New("an empty box, or one that sticks out")
		}
	}
	return nil
}

// cutDims returns the dimensions along which some box is not as long as the tensor.
func cutDims(shape []uint64, boxes []Piece) (dims []int) {
	for d := range shape {
		if slices.ContainsFunc(boxes, func(b Piece) bool { return b.Extent[d] != shape[d] }) {
			dims = append(dims, d)
		}
	}
	return dims
}

func appendCorners(corners []corner, dims []int, start, extent []uint64, sign int) []corner {
	for far := range 1 << len(dims) { // the dimensions in which the corner is at the far end
		c := corner{sign: sign}
		if bits.OnesCount(uint(far))%2 != 0 {
			c.sign = -sign
		}
		for i, d := range dims {
			c.at[i] = start[d] + extent[d]*uint64(far>>i&1)
		}
		corners = append(corners, c)
	}
	return corners
}
