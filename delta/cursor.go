package delta

import (
	"encoding/binary"
	"errors"
	"math"
)

// cursor reads the head of a frame from its begin to its end.
type cursor struct{ rest []byte }

var errHead = errors.New("the head ends early")

func (c *cursor) uvarint() (uint64, error) {
	v, n := binary.Uvarint(c.rest)
	if n <= 0 {
		return 0, errHead
	}
	if n > 1 && c.rest[n-1] == 0 {
		return 0, errors.New("number not in its shortest form")
	}
	c.rest = c.rest[n:]
	return v, nil
}

// count reads a number of at most limit.
func (c *cursor) count(limit int) (int, error) {
	v, err := c.uvarint()
	if err != nil {
		return 0, err
	}
	if v > uint64(min(limit, math.MaxInt32)) {
		return 0, errors.New("count out of range")
	}
	return int(v), nil
}

func (c *cursor) take(n int) ([]byte, error) {
	if n > len(c.rest) {
		return nil, errHead
	}
	b := c.rest[:n]
	c.rest = c.rest[n:]
	return b, nil
}
