package delta

// appendChanged appends the positions at which the words of old and new differ. They are compared as bits: -0 and
// +0 differ, and a NaN equals itself.
func appendChanged[T word](pos []uint32, old, new []T) []uint32 {
	old = old[:len(new)]
	for i, w := range new {
		if w != old[i] {
			pos = append(pos, uint32(i))
		}
	}
	return pos
}
