package delta

import "math/bits"

// log2 returns the logarithm of x, which is not zero, to base 2 in units of 1/256, rounded down. Whatever shapes a stream
// is computed in integers, so that all machines write the same.
func log2(x uint64) int {
	n := bits.Len64(x) - 1
	m := x << (63 - n) // in [1, 2), as a fraction of 2^63
	l := n
	for range 8 {
		hi, _ := bits.Mul64(m, m) // in [1, 4), as a fraction of 2^62
		l <<= 1
		if hi>>63 != 0 {
			l |= 1
			m = hi
		} else {
			m = hi << 1
		}
	}
	return l
}
