package delta

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"unsafe"
)

// A float of any width lies on a grid: its bit patterns, put in the order of the numbers they stand for. Training
// moves a weight to a neighbour on the grid nearly always, so a change is written as a signed step on it. The map is
// a bijection on all patterns; -0, infinities and NaN payloads are ordinary points.

// gridOf returns the place of the pattern w on the grid of a signed-magnitude float.
func gridOf[T word](w T) T {
	top := topBit[T]()
	if w&top != 0 {
		return ^w
	}
	return w | top
}

// patternAt is the inverse of gridOf.
func patternAt[T word](g T) T {
	top := topBit[T]()
	if g&top != 0 {
		return g &^ top
	}
	return ^g
}

func topBit[T word]() T { return ^(^T(0) >> 1) }

// stepBetween returns the step from old to new, modulo the size of the grid, as a signed number.
func stepBetween[T word](old, new T, float bool) int64 {
	if float {
		old, new = gridOf(old), gridOf(new)
	}
	unused := 64 - 8*unsafe.Sizeof(old)
	return int64(uint64(new-old)<<unused) >> unused
}

// stepFrom undoes stepBetween.
func stepFrom[T word](old T, step int64, float bool) T {
	if float {
		return patternAt(gridOf(old) + T(step))
	}
	return old + T(step)
}

// appendStep writes a step, which is never zero: 1, -1, 2, -2 ... become 0, 1, 2, 3 ... in a varint.
func appendStep(b []byte, step int64) []byte {
	if step > 0 {
		return binary.AppendUvarint(b, uint64(step-1)*2)
	}
	return binary.AppendUvarint(b, uint64(-(step+1))*2+1)
}

var errStep = errors.New("step out of range")

// readStep reads what appendStep wrote for a grid of the given width in bytes.
func readStep(b *cursor, width int) (int64, error) {
	v, err := b.uvarint()
	if err != nil {
		return 0, err
	}
	step := int64(v/2) + 1
	if v&1 != 0 {
		step = -int64(v/2) - 1
	}
	if v/2 >= 1<<(8*uint(width)-1) || (step > 0 && v/2 == 1<<(8*uint(width)-1)-1) {
		return 0, errStep
	}
	return step, nil
}

// cursor reads a section of a frame from its begin to its end.
type cursor struct{ rest []byte }

var errSection = errors.New("section ends early")

func (c *cursor) uvarint() (uint64, error) {
	v, n := binary.Uvarint(c.rest)
	if n <= 0 {
		return 0, errSection
	}
	c.rest = c.rest[n:]
	return v, nil
}

// count reads a number of at most limit.
func (c *cursor) count(limit int) (int, error) {
	v, err := c.uvarint()
	if err != nil {
		return 0, err
	}
	if v > uint64(min(limit, math.MaxInt32)) {
		return 0, errors.New("count out of range")
	}
	return int(v), nil
}

func (c *cursor) take(n int) ([]byte, error) {
	if n > len(c.rest) {
		return nil, errSection
	}
	b := c.rest[:n]
	c.rest = c.rest[n:]
	return b, nil
}

// widthIndex numbers the widths 1, 2, 4 and 8 from 0.
func widthIndex(width int) int { return bits.TrailingZeros(uint(width)) }
