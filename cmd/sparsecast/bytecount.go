package main

import (
	"fmt"
	"math"

	"github.com/dustin/go-humanize"
)

// byteCount is a number of bytes on the command line, such as 256MB or 3GiB.
type byteCount int64

// UnmarshalText reads a number with or without a unit.
func (b *byteCount) UnmarshalText(text []byte) error {
	n, err := humanize.ParseBytes(string(text))
	if err != nil || n > math.MaxInt64 {
		return fmt.Errorf("%q is no size: write it like 256MB or 3GB", text)
	}
	*b = byteCount(n)
	return nil
}
