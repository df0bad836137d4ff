package delta

import (
	"fmt"

	"github.com/sparsecast/sparsecast/delta/safetensors"
)

// coding says how the elements of a dtype are read as words: little-endian unsigned integers of width bytes.
// Which words change depends above all on the exponent of the old value, and a float moves by small steps on
// the ordered grid of its bit patterns; so a coding knows where the exponent sits and whether the top bit is a sign.
type coding struct {
	width    int  // bytes a word: 1, 2, 4 or 8
	expShift uint // lowest bit of the exponent
	expBits  uint // 0: one class for all words
	float    bool // sign and magnitude: the grid runs through the patterns as numbers do
}

var codings = map[string]coding{
	"F64":     {width: 8, expShift: 52, expBits: 11, float: true},
	"F32":     {width: 4, expShift: 23, expBits: 8, float: true},
	"C64":     {width: 4, expShift: 23, expBits: 8, float: true}, // pairs of F32
	"F16":     {width: 2, expShift: 10, expBits: 5, float: true},
	"BF16":    {width: 2, expShift: 7, expBits: 8, float: true},
	"F8_E4M3": {width: 1, expShift: 3, expBits: 4, float: true},
	"F8_E5M2": {width: 1, expShift: 2, expBits: 5, float: true},

	"F8_E4M3FNUZ": {width: 1, expShift: 3, expBits: 4, float: true},
	"F8_E5M2FNUZ": {width: 1, expShift: 2, expBits: 5, float: true},
	"F8_E8M0":     {width: 1},
}

// codingOf returns how a dtype is read. Integers are words of one class; what is smaller than a byte, and every
// dtype that we do not know, is plain bytes.
func codingOf(dtype string) coding {
	if c, ok := codings[dtype]; ok {
		return c
	}
	if bits, ok := safetensors.BitWidth(dtype); ok {
		switch bits {
		case 16, 32, 64:
			return coding{width: bits / 8}
		}
	}
	return coding{width: 1}
}

// String names a coding for errors.
func (c coding) String() string {
	if c.float {
		return fmt.Sprintf("floats of %d bits", 8*c.width)
	}
	return fmt.Sprintf("words of %d bits", 8*c.width)
}
