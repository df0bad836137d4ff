package delta

import "errors"

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

// stepBetween returns the step from old to new, modulo the size of the grid.
func stepBetween[T word](old, new T, float bool) T {
	if float {
		return gridOf(new) - gridOf(old)
	}
	return new - old
}

// stepFrom undoes stepBetween.
func stepFrom[T word](old, step T, float bool) T {
	if float {
		return patternAt(gridOf(old) + step)
	}
	return old + step
}

// split returns the size of a step less one, and 1 if it leads down.
func split[T word](step T) (size, down uint64) {
	if step&topBit[T]() != 0 {
		return uint64(^step), 1
	}
	return uint64(step - 1), 0
}

var errStep = errors.New("step out of range")
