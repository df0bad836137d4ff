package bench

import (
	"encoding/binary"
	"errors"
)

// cutter takes numbers and values off what a peer wrote. The first that is missing makes all that follow zero.
type cutter struct {
	rest []byte
	err  error
}

func (c *cutter) take(n int) []byte {
	if c.err == nil && n > len(c.rest) {
		c.err = errors.New("it ends too early")
	}
	if c.err != nil {
		return make([]byte, n)
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cutter) u8() int  { return int(c.take(1)[0]) }
func (c *cutter) u16() int { return int(binary.LittleEndian.Uint16(c.take(2))) }
func (c *cutter) u32() int { return int(binary.LittleEndian.Uint32(c.take(4))) }

// count takes the number of changes of a tensor, which has so many words.
func (c *cutter) count(words int) int {
	n := c.u32()
	if n > words && c.err == nil {
		c.err = errors.New("more changes than words")
	}
	if c.err != nil {
		return 0
	}
	return n
}

// put writes the next value over word i of a tensor.
func (c *cutter) put(b []byte, l layout, i int) {
	v := c.take(l.width)
	if c.err == nil && (i < 0 || i >= l.words(b)) {
		c.err = errors.New("a change outside of its tensor")
	}
	if c.err == nil {
		copy(b[i*l.width:], v)
	}
}

// done wants everything to be taken.
func (c *cutter) done() error {
	if c.err == nil && len(c.rest) > 0 {
		return errors.New("there is more than was written")
	}
	return c.err
}
