package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteCount is a number of bytes on the command line, such as 256MB or 3GiB.
type byteCount int64

var byteUnits = map[string]float64{
	"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
}

// UnmarshalText reads a number with or without a unit.
func (b *byteCount) UnmarshalText(text []byte) error {
	s := strings.ToUpper(strings.TrimSpace(string(text)))
	digits := strings.TrimRight(s, "BKMGTI")
	n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	unit, ok := byteUnits[s[len(digits):]]
	if err != nil || !ok || math.IsNaN(n) || n < 0 || n*unit > 1<<60 {
		return fmt.Errorf("%q is no size: write it like 256MB or 3GB", text)
	}
	*b = byteCount(n * unit)
	return nil
}
