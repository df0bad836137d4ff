package delta

// classCount is the number of classes that the elements of a tile are sorted into, by the exponent of the old
// value. Sixteen do as well as all 256 exponents of a bf16 (measured on recorded GRPO runs).
const classCount = 16

// classifier maps an old value to its class: its exponent above a floor, clamped.
type classifier struct {
	shift uint
	mask  uint64
	floor uint64
}

func newClassifier(c coding, floor uint8) classifier {
	return classifier{shift: c.expShift, mask: 1<<c.expBits - 1, floor: uint64(floor) << expScale(c)}
}

// expScale brings the eleven bits of an F64 exponent down to the eight of a floor.
func expScale(c coding) uint { return max(c.expBits, 8) - 8 }

// of returns the class of the bit pattern w.
func (k classifier) of(w uint64) int {
	e := w >> k.shift & k.mask
	if e <= k.floor {
		return 0
	}
	return int(min(e-k.floor, classCount-1))
}

// exponents counts the exponents of old values that changed.
type exponents [256]uint32

func countExponents[T word](n *exponents, old []T, pos []uint32, c coding) {
	k := newClassifier(c, 0)
	scale := expScale(c)
	for _, p := range pos {
		n[uint64(old[p])>>k.shift&k.mask>>scale]++
	}
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
