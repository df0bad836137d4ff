package delta

// classCount is the number of classes that words are sorted into, by the exponent of the old value. Sixteen do as well as
// all 256 exponents of a bf16 (measured on recorded GRPO runs).
const classCount = 16

// classes returns how many classes words of a coding have.
func (c coding) classes() int {
	if c.expBits == 0 {
		return 1
	}
	return classCount
}

// expScale brings the eleven bits of an F64 exponent down to the eight of a floor.
func expScale(c coding) uint { return max(c.expBits, 8) - 8 }

// exponents counts the exponents of old values that changed.
type exponents [256]uint32

// A sample takes the first sampleWords of each so many, until it has found enoughSampled changes.
const (
	sampleWords   = 1 << 10
	enoughSampled = 256
)

// sample looks at some words of a coding in a frame, from the first tile on in which something changed. It chooses the floor
// of the classes and tells about how many changes there are.
func sample(c coding, f frame, first int, tiles tileSource) (floor uint8, changes int, err error) {
	var n exponents
	for every := 64 * sampleWords; every >= sampleWords; every /= 8 {
		n = exponents{}
		seen, looked, all := 0, 0, 0
		for i := first; i < len(f.tiles); i++ {
			t := f.tiles[i]
			if t.coding != c {
				continue
			}
			all += t.words()
			for off := 0; off < t.size; off += every * c.width {
				old, new, err := tiles.sample(i, off, min(sampleWords*c.width, t.size-off))
				if err != nil {
					return 0, 0, err
				}
				seen += countExponentsOf(&n, old, new, c)
				looked += len(new) / c.width
			}
		}
		changes = int(uint64(seen) * uint64(all) / uint64(looked))
		if seen >= enoughSampled || c.expBits == 0 {
			break
		}
	}
	return n.floor(), changes, nil
}

// countExponents counts changed words by exponent.
func countExponents[T word](n *exponents, old, new []T, c coding) (seen int) {
	scale := expScale(c)
	for i, w := range old {
		if w != new[i] {
			n[uint64(w)>>c.expShift&(1<<c.expBits-1)>>scale]++
			seen++
		}
	}
	return seen
}

// floor returns the smallest exponent with more than 1/256 of the changes at or below it: whatever lies lower is so
// rare that it may share the lowest class.
func (n *exponents) floor() uint8 {
	var all, below uint32
	for _, c := range n {
		all += c
	}
	for e, c := range n {
		if below += c; below > all/256 {
			return uint8(e)
		}
	}
	return 0
}
