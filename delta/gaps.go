package delta

import (
	"math/bits"
	"sync"
)

// Which elements of a class change is close to chance: each with the same odds, in runs of all lengths. So the gaps
// between changes are geometric, and one number describes their table. A gap is coded as gap>>low in a symbol, then
// its lowest bits as they are. Since low is chosen such that the symbols fall by a factor between 0.64 and 0.8 from each
// to the next, they take 0.01 bits more than the gaps do.

// odds is the logarithm to base 2 of changed by unchanged elements, in quarters from oddsZero on.
type odds uint8

const (
	oddsCount = 128
	oddsZero  = 96
)

// oddsOf returns the odds of changed among all elements.
func oddsOf(changed, all uint64) odds {
	if changed >= all {
		return oddsCount - 1
	}
	quarters := (log2(changed) - log2(all-changed) + 32) >> 6 // rounded to the nearest
	return odds(max(0, min(oddsCount-1, oddsZero+quarters)))
}

// gapSymbols is the number of symbols; the last stands for all longer gaps too.
const gapSymbols = 32

// gapTable codes gaps of some odds.
type gapTable struct {
	tansTable
	low uint // bits of a gap that are not in its symbol
}

var gapTables [oddsCount]struct {
	once  sync.Once
	table gapTable
}

// gapsOf returns the table for gaps of some odds. A process builds each once.
func gapsOf(o odds) *gapTable {
	t := &gapTables[o]
	t.once.Do(func() { t.table.build(o) })
	return &t.table
}

// fraction is a number below 2 in units of 2^-63.
type fraction uint64

const one fraction = 1 << 63

func (a fraction) times(b fraction) fraction {
	hi, _ := bits.Mul64(uint64(a), uint64(b))
	return fraction(hi << 1)
}

// over returns a/b, where a is less than b.
func (a fraction) over(b fraction) fraction {
	q, _ := bits.Div64(uint64(a)>>1, uint64(a)<<63, uint64(b))
	return fraction(q)
}

// quarterPowers are 2^(i/4).
var quarterPowers = [4]fraction{0x8000000000000000, 0x9837f0518db8a96f, 0xb504f333f9de6484, 0xd744fccad69d6af4}

// unchanged returns the chance that an element stays as it is.
func (o odds) unchanged() fraction {
	whole, quarter := (int(o)-oddsZero)>>2, (int(o)-oddsZero)&3
	if power := quarterPowers[quarter]; whole <= 0 {
		odds := power >> -whole >> 1 // halved, as the sum might not fit
		return (one >> 1).over(one>>1 + odds)
	} else {
		rest := one >> (whole + 1) // both divided by 2^(whole+1)
		return rest.over(rest + power>>1)
	}
}

// build chooses low, the smallest for which every symbol falls to less than four fifths of the one before.
func (t *gapTable) build(o odds) {
	fall := o.unchanged()
	for fall > one/5*4 {
		fall = fall.times(fall)
		t.low++
	}
	var weights [gapSymbols]uint64
	rest := one
	for s := range gapSymbols - 1 {
		next := rest.times(fall)
		weights[s] = max(1, uint64(rest-next)>>16)
		rest = next
	}
	weights[gapSymbols-1] = max(1, uint64(rest)>>16)
	var freq [gapSymbols]uint16
	normalize(freq[:], weights[:])
	t.tansTable.build(freq[:])
}
