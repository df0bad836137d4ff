package delta

import (
	"encoding/binary"
	"fmt"
)

// mode is how a block is written down.
type mode uint8

const (
	modeUnchanged mode = iota // not at all
	modeSparse                // by its changes
	modeRaw                   // as it is
	modeCount
)

// appendModes writes modes down in runs: uvarint of the length times 4, and the mode.
func appendModes(b []byte, modes []mode) []byte {
	for len(modes) > 0 {
		n := 1
		for n < len(modes) && modes[n] == modes[0] {
			n++
		}
		b = binary.AppendUvarint(b, uint64(n)<<2|uint64(modes[0]))
		modes = modes[n:]
	}
	return b
}

// readModes reads the modes of n blocks, not all of them unchanged.
func readModes(in *cursor, modes []mode, n int) ([]mode, error) {
	for before := modeCount; len(modes) < n; {
		v, err := in.count(4*(n-len(modes)) + 3)
		if err != nil {
			return nil, err
		}
		run, m := v>>2, mode(v&3)
		if run == 0 || run > n-len(modes) || m >= modeCount || m == before || m == modeUnchanged && run == n {
			return nil, fmt.Errorf("%d blocks of mode %d, %d to come", run, m, n-len(modes))
		}
		for range run {
			modes = append(modes, m)
		}
		before = m
	}
	return modes, nil
}
