package delta

import (
	"math/bits"
	"unsafe"
)

// A span is as many words as are looked at together, in rows of 64, so that a bit of a uint64 stands for each word. All that
// is known of one fits in a first-level cache beside its words.
const (
	rowWords  = 64
	spanRows  = 64
	spanWords = rowWords * spanRows
)

// span is what a kernel finds out about the words of a span.
type span struct {
	rows    int
	changed [spanRows]uint64             // the words that changed
	planes  [4][spanRows]uint64          // the bits of the class of each word
	members [spanRows][classCount]uint64 // the words of each class
	before  [spanRows][classCount]uint16 // how many words of the class come before the row
	totals  [classCount]uint16           // how many there are
	places  [spanWords + rowWords]uint16 // of single words
}

// sortRule says which class a word has: its exponent above a floor, clamped. All words have class 0 where mask is 0.
type sortRule struct {
	shift uint64 // of the exponent
	mask  uint64 // of the exponent, when it is shifted
	from  uint64 // the exponent up to which words are in class 0
}

func ruleOf(c coding, floor uint8) sortRule {
	return sortRule{shift: uint64(c.expShift), mask: 1<<c.expBits - 1, from: uint64(floor) << expScale(c)}
}

// class returns the class of a word.
func (r sortRule) class(w uint64) uint {
	e := w >> r.shift & r.mask
	return uint(min(max(e, r.from)-r.from, classCount-1))
}

// whole returns words in whole rows, in scratch unless they are. What fills the last row are zeros, which are in class 0 by
// every rule.
func whole[T word](words []T, scratch *[spanWords]T) []T {
	if len(words)%rowWords == 0 {
		return words
	}
	rows := (len(words) + rowWords - 1) / rowWords
	clear(scratch[copy(scratch[:], words) : rows*rowWords])
	return scratch[:rows*rowWords]
}

// diff lists the words that differ, which are whole rows.
func diff[T word](s *span, old, new []T) []uint16 {
	a, b := firstByte(old), firstByte(new)
	s.rows = len(old) / rowWords
	switch unsafe.Sizeof(T(0)) {
	case 1:
		active.diff8(&s.changed[0], a, b, s.rows)
	case 2:
		active.diff16(&s.changed[0], a, b, s.rows)
	default:
		diffGo[T](&s.changed[0], a, b, s.rows)
	}
	return s.places[:active.list(&s.places, &s.changed[0], s.rows)]
}

// arrange finds out where the words of each class are among words in whole rows.
func arrange[T word](s *span, words []T, rule *sortRule) {
	s.rows = len(words) / rowWords
	switch unsafe.Sizeof(T(0)) {
	case 1:
		active.sort8(&s.planes, firstByte(words), rule, s.rows)
	case 2:
		active.sort16(&s.planes, firstByte(words), rule, s.rows)
	default:
		sortGo[T](&s.planes, firstByte(words), rule, s.rows)
	}
	active.rank(&s.members, &s.before, &s.totals, &s.planes, s.rows)
}

// rank returns the rank of a word of a class among those of the span.
func (s *span) rank(class uint, place uint16) uint32 {
	row, bit := place/rowWords%spanRows, place%rowWords
	return uint32(s.before[row][class%classCount]) + uint32(bits.OnesCount64(s.members[row][class%classCount]&(1<<bit-1)))
}

// find lists the words of a class that have the ranks that are less than its total, counted from begin.
func (s *span) find(class int, ranks []uint32, begin uint32) []uint16 {
	ranks = ranks[:min(len(ranks), int(s.totals[class]))]
	if len(ranks) == 0 {
		return nil
	}
	for row := s.rows; row < spanRows; row++ { // nothing is there
		s.before[row][class] = spanWords
	}
	end := begin + uint32(s.totals[class])
	return s.places[:active.find(&s.places[0], &ranks[0], len(ranks), begin, end, &s.before[0][class], &s.members[0][class])]
}

func firstByte[T word](words []T) *byte { return (*byte)(unsafe.Pointer(unsafe.SliceData(words))) }
