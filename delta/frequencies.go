package delta

// normalize makes frequencies that add up to tansSize of weights, which are below 2^48 and not all zero. None becomes
// zero that is not: what is rare gets 1, and the others share the rest.
func normalize(freq []uint16, weights []uint64) {
	var sum, common uint64
	for _, w := range weights {
		sum += w
	}
	left := uint64(tansSize)
	for s, w := range weights {
		freq[s] = 0
		if w > 0 && w*tansSize < sum {
			freq[s] = 1
			left--
		} else {
			common += w
		}
	}
	total := 0
	for s, w := range weights {
		if w > 0 && freq[s] == 0 {
			freq[s] = uint16(max(1, w*left/common))
		}
		total += int(freq[s])
	}
	for ; total > tansSize; total-- { // by a few that were rounded up
		freq[largest(freq)]--
	}
	freq[largest(freq)] += uint16(tansSize - total)
}

// largest returns the first of the largest.
func largest(freq []uint16) (most int) {
	for s, f := range freq {
		if f > freq[most] {
			most = s
		}
	}
	return most
}
