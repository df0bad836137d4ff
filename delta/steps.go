package delta

import "math/bits"

// How far an element moves on the grid depends on its class: where the grid is coarse, as most of it is, it moves to a
// neighbour, and only the sign is to be told; where it is fine, steps are longer. A step is coded as a symbol for the
// size less one, in two ranges an octave from 4 on, then the bits that place it in its range, and its sign apart, which
// is left to chance. Few steps make a table, so its weights are described by half octaves.

// maxStepSymbols is the number of symbols of words of 8 bytes.
const maxStepSymbols = 2 * 63

// stepSymbol returns the symbol of a step of size m+1, and how many bits of m it leaves open.
func stepSymbol(m uint64) (s uint8, open uint) {
	if m < 4 {
		return uint8(m), 0
	}
	e := uint(bits.Len64(m)) - 1
	return uint8(2*e + uint(m>>(e-1)&1)), e - 1
}

// stepStart undoes stepSymbol: it returns the smallest m of the symbol.
func stepStart(s uint8) (m uint64, open uint) {
	if s < 4 {
		return uint64(s), 0
	}
	e := uint(s) / 2
	return (2 | uint64(s)&1) << (e - 1), e - 1
}

// lastStep returns the last symbol for words of some width in bytes.
func lastStep(width int) uint8 {
	s, _ := stepSymbol(1<<(8*uint(width)-1) - 1)
	return s
}

// stepModel is how often each symbol occurs: from lo to hi, at levels of 0 for never to 15 for the most frequent, two
// an octave. Neither of the ends is 0.
type stepModel struct {
	lo, hi uint8
	levels [maxStepSymbols]uint8
}

// stepLevels is the highest level.
const stepLevels = 15

// stepsOf describes how often the symbols occurred, which is not never.
func stepsOf(seen *[maxStepSymbols]uint32) (m stepModel) {
	var most uint32
	for _, n := range seen {
		most = max(most, n)
	}
	m.lo = maxStepSymbols
	for s, n := range seen {
		if n == 0 {
			continue
		}
		m.lo, m.hi = min(m.lo, uint8(s)), uint8(s)
		below := (log2(uint64(most)) - log2(uint64(n)) + 64) >> 7 // half octaves, to the nearest
		m.levels[s] = uint8(max(1, stepLevels-below))
	}
	return m
}

// certain reports whether there is only one symbol, which takes no code.
func (m *stepModel) certain() bool { return m.lo == m.hi }

func (m *stepModel) build(t *tansTable) {
	halves := [2]uint64{1 << 20, 1482910} // 2^20 and 2^20.5
	var weights [maxStepSymbols]uint64
	for s := m.lo; s <= m.hi; s++ {
		if l := m.levels[s]; l > 0 {
			weights[s] = halves[l&1] << (l >> 1)
		}
	}
	var freq [maxStepSymbols]uint16
	normalize(freq[:m.hi+1], weights[:m.hi+1])
	t.build(freq[:m.hi+1])
}

// append writes a model down: 0 where all steps are of size 1; else 1+lo, hi-lo and, if that is not 0, the levels, two
// a byte.
func (m *stepModel) append(b []byte) []byte {
	if m.hi == 0 {
		return append(b, 0)
	}
	b = append(b, 1+m.lo, m.hi-m.lo)
	if m.certain() {
		return b
	}
	levels := m.levels[m.lo : m.hi+1]
	for ; len(levels) > 1; levels = levels[2:] {
		b = append(b, levels[0]|levels[1]<<4)
	}
	if len(levels) > 0 {
		b = append(b, levels[0])
	}
	return b
}

// readSteps reads a model for words of some width.
func readSteps(in *cursor, width int) (m stepModel, err error) {
	b, err := in.take(1)
	if err != nil || b[0] == 0 {
		m.levels[0] = stepLevels
		return m, err
	}
	m.lo = b[0] - 1
	if b, err = in.take(1); err != nil {
		return m, err
	}
	last := lastStep(width)
	if m.lo > last || b[0] > last-m.lo || m.lo+b[0] == 0 {
		return m, errStep
	}
	m.hi = m.lo + b[0]
	if m.certain() {
		m.levels[m.lo] = stepLevels
		return m, nil
	}
	n := int(b[0]) + 1
	if b, err = in.take((n + 1) / 2); err != nil {
		return m, err
	}
	for i := range n {
		m.levels[int(m.lo)+i] = b[i/2] >> (4 * (i % 2)) & 15
	}
	if m.levels[m.lo] == 0 || m.levels[m.hi] == 0 || n%2 == 1 && b[n/2] > 15 {
		return m, errStep
	}
	return m, nil
}
