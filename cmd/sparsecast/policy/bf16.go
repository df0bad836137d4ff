package policy

import "math"

// bf16 rounds x to the nearest bf16, ties to the even pattern, and returns its bits.
// A NaN stays one: its payload is cut and made quiet.
func bf16(x float32) uint16 {
	u := math.Float32bits(x)
	if u&0x7fffffff > 0x7f800000 {
		return uint16(u>>16) | 0x40
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}
