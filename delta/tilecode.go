package delta

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// How a tile is written down; one byte each in the head section.
const (
	tileUnchanged = 0
	tileSparse    = 1 // counts by class, gaps and steps
	tileRaw       = 2 // its new bytes, plane by plane
)

// In a sparse tile the changes of one class are counted among the elements of that class alone: a gap is the number
// of elements of the class that stay as they are before the next one that changes. Where the grid is fine changes
// are dense and gaps short, where it is coarse they are rare; mixed they would tell nothing.

// writeSparse appends the changes at pos, in increasing order, to the sections.
func writeSparse[T word](s *sections, old, new []T, pos []uint32, k classifier, float bool) {
	var gap, count [classCount]uint64
	i := uint32(0)
	for _, p := range pos {
		for ; i < p; i++ {
			gap[k.of(uint64(old[i]))]++
		}
		c := k.of(uint64(old[p]))
		s[sectionGaps+c] = binary.AppendUvarint(s[sectionGaps+c], gap[c])
		s[sectionSteps+c] = appendStep(s[sectionSteps+c], stepBetween(old[p], new[p], float))
		gap[c] = 0
		count[c]++
		i = p + 1
	}
	for _, n := range count {
		s[sectionHead] = binary.AppendUvarint(s[sectionHead], n)
	}
}

// readSparse turns new, which holds a copy of old, into the state after the changes.
func readSparse[T word](s *[sectionCount]cursor, old, new []T, k classifier, width int, float bool) (changed int, err error) {
	var left [classCount]int    // changes to come in a class
	var wait [classCount]uint64 // elements of the class before the next of them
	for c := range left {
		if left[c], err = s[sectionHead].count(len(old)); err != nil {
			return 0, err
		}
		if wait[c], err = nextGap(&s[sectionGaps+c], left[c]); err != nil {
			return 0, err
		}
		changed += left[c]
	}
	if changed == 0 || changed > len(old) {
		return 0, fmt.Errorf("%d changes among %d elements", changed, len(old))
	}
	open := changed
	for i, w := range old {
		c := k.of(uint64(w))
		if wait[c] > 0 {
			wait[c]--
			continue
		}
		step, err := readStep(&s[sectionSteps+c], width)
		if err != nil {
			return 0, err
		}
		new[i] = stepFrom(w, step, float)
		left[c]--
		if wait[c], err = nextGap(&s[sectionGaps+c], left[c]); err != nil {
			return 0, err
		}
		if open--; open == 0 {
			return changed, nil
		}
	}
	return 0, errors.New("changes beyond the end of the tile")
}

// nextGap reads the gap before the next change, or waits forever when none is left.
func nextGap(gaps *cursor, left int) (uint64, error) {
	if left == 0 {
		return 1 << 62, nil
	}
	return gaps.uvarint()
}

// writeRaw appends the bytes of a tile, the first of all words, then the second and so on: the planes of a float's
// exponent squeeze, those of its mantissa do not.
func writeRaw(s *sections, new []byte, width int) {
	for p := range width {
		plane := s[sectionRaw+p]
		for i := p; i < len(new); i += width {
			plane = append(plane, new[i])
		}
		s[sectionRaw+p] = plane
	}
}

func readRaw(s *[sectionCount]cursor, new []byte, width int) error {
	for p := range width {
		plane, err := s[sectionRaw+p].take(len(new) / width)
		if err != nil {
			return err
		}
		for i, b := range plane {
			new[i*width+p] = b
		}
	}
	return nil
}
