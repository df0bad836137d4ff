package policy

import "math"

// golden is 2^64 over the golden ratio, the odd stride of splitmix64.
const golden = 0x9e3779b97f4a7c15

// random is a splitmix64 generator. Its value is its whole state.
type random uint64

// branch returns the seed for the place under seed that the words name. Different places get unrelated streams.
func branch(seed uint64, words ...uint64) uint64 {
	for _, w := range words {
		seed = mix(mix(seed+golden) ^ w)
	}
	return seed
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (r *random) next() uint64 {
	*r += golden
	return mix(uint64(*r))
}

// The normal numbers below are sums of uniform 16-bit lanes, centred and scaled to a spread of one: exact in
// float32 and so the same everywhere, which no library's logarithm would be.
const (
	laneMean = 65535.0 / 2
	// roughScale is one over the spread of four lanes, 65536/sqrt(3).
	roughScale = 1.7320508 / 65536
	// fineScale is one over the spread of twelve lanes.
	fineScale = 1.0 / 65536
)

// rough returns a normal number from one draw: never beyond 3.5 spreads.
func (r *random) rough() float32 {
	return float32(float32(lanes(r.next())-4*laneMean) * roughScale)
}

// fine returns a normal number from three draws: never beyond six spreads.
func (r *random) fine() float32 {
	return float32(float32(lanes(r.next())+lanes(r.next())+lanes(r.next())-12*laneMean) * fineScale)
}

// lanes adds the four 16-bit lanes of u.
func lanes(u uint64) int32 {
	const low = 0x0000ffff0000ffff
	u = u&low + u>>16&low
	return int32(u&0xffffffff + u>>32)
}

// sixteenths holds 2^(i/16).
var sixteenths = [16]float32{
	1, 1.0442737824, 1.0905077327, 1.1387886348, 1.1892071150, 1.2418578121, 1.2968395547, 1.3542555469,
	1.4142135624, 1.4768261459, 1.5422108254, 1.6104903319, 1.6817928305, 1.7562521604, 1.8340080864, 1.9152065614,
}

// lognormal returns 2^x for a normal x around zero with the given spread, x rounded to sixteenths.
func (r *random) lognormal(spread float32) float32 {
	k := int(math.Floor(float64(r.fine() * spread * 16)))
	return float32(math.Ldexp(float64(sixteenths[k&15]), k>>4))
}
