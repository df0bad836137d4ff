package delta

import (
	"math/bits"
	"unsafe"
)

// goKernel is for every processor.
var goKernel = kernel{
	name: "go", diff8: diffGo[uint8], diff16: diffGo[uint16], sort8: sortGo[uint8], sort16: sort16Go, rank: rankGo, list: listGo, find: findGo,
}

func rowsAt[T word](p *byte, rows int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(p)), rows*rowWords)
}

func diffGo[T word](changed *uint64, old, new *byte, rows int) {
	out, n := unsafe.Slice(changed, rows), 8*int(unsafe.Sizeof(T(0))) // uint64s a row
	a := unsafe.Slice((*uint64)(unsafe.Pointer(old)), n*rows)
	b := unsafe.Slice((*uint64)(unsafe.Pointer(new)), n*rows)
	for r := range out {
		b := b[r*n:][:n]
		var found uint64
		for i, x := range a[r*n:][:n] {
			if x ^= b[i]; x != 0 {
				found |= differing[T](x) << (i * rowWords / n)
			}
		}
		out[r] = found
	}
}

// differing has a bit for each word of x that is not zero.
func differing[T word](x uint64) (found uint64) {
	half := 4 * uint(unsafe.Sizeof(T(0))) // of the bits of a word
	for bit := uint64(1); x != 0; bit <<= 1 {
		if T(x) != 0 {
			found |= bit
		}
		x = x >> half >> half
	}
	return found
}

func sortGo[T word](planes *[4][spanRows]uint64, words *byte, rule *sortRule, rows int) {
	r := *rule
	for row := range rows {
		var p0, p1, p2, p3 uint64
		for i, w := range rowsAt[T](words, rows)[row*rowWords:][:rowWords] {
			c := uint64(r.class(uint64(w)))
			p0 |= c & 1 << i
			p1 |= c >> 1 & 1 << i
			p2 |= c >> 2 & 1 << i
			p3 |= c >> 3 << i
		}
		planes[0][row], planes[1][row], planes[2][row], planes[3][row] = p0, p1, p2, p3
	}
}

// everyFourth has the lowest bit of each of four words.
const everyFourth = 0x0001_0001_0001_0001

// sort16Go looks at four words at a time, in the lanes of a uint64.
func sort16Go(planes *[4][spanRows]uint64, words *byte, rule *sortRule, rows int) {
	mask, from, shift := rule.mask*everyFourth, rule.from*everyFourth, rule.shift
	for row := range rows {
		in := (*[2 * rowWords / 8]uint64)(unsafe.Add(unsafe.Pointer(words), row*2*rowWords))
		var p0, p1, p2, p3 uint64
		for i := 0; i < len(in); i += 4 {
			x := classes4(in[i], mask, from, shift) | classes4(in[i+1], mask, from, shift)<<16 |
				classes4(in[i+2], mask, from, shift)<<32 | classes4(in[i+3], mask, from, shift)<<48
			// Transpose the bits of four classes, and then the fours.
			x = swap(x, 3, 0x0a0a_0a0a_0a0a_0a0a)
			x = swap(x, 6, 0x00cc_00cc_00cc_00cc)
			x = swap(x, 12, 0x0000_f0f0_0000_f0f0)
			x = swap(x, 24, 0x0000_0000_ff00_ff00)
			p0 = p0>>16 | x<<48
			p1 = p1>>16 | x>>16<<48
			p2 = p2>>16 | x>>32<<48
			p3 = p3>>16 | x>>48<<48
		}
		planes[0][row%spanRows], planes[1][row%spanRows], planes[2][row%spanRows], planes[3][row%spanRows] = p0, p1, p2, p3
	}
}

// classes4 returns the classes of four words, four bits each.
func classes4(words, mask, from, shift uint64) uint64 {
	const top = 0x8000 * everyFourth
	e := (words>>(shift&63)&mask | top) - from
	above := e & top
	e &= above - above>>15 // 0 where the exponent is below
	over := (e + (top - classCount*everyFourth)) & top
	e |= over>>11 - over>>15
	return (e & (15 * everyFourth)) * (1<<48 | 1<<36 | 1<<24 | 1<<12) >> 48
}

// swap exchanges the bits of mask with those that are n higher.
func swap(x uint64, n uint, mask uint64) uint64 {
	t := (x ^ x>>n) & mask
	return x ^ t ^ t<<n
}

func rankGo(members *[spanRows][classCount]uint64, before *[spanRows][classCount]uint16, totals *[classCount]uint16,
	planes *[4][spanRows]uint64, rows int,
) {
	var sum [classCount]uint16
	for row := range rows {
		p0, p1, p2, p3 := planes[0][row], planes[1][row], planes[2][row], planes[3][row]
		low := [4]uint64{^p0 &^ p1, p0 &^ p1, p1 &^ p0, p0 & p1}
		high := [4]uint64{^p2 &^ p3, p2 &^ p3, p3 &^ p2, p2 & p3}
		before[row] = sum
		for c := range classCount {
			m := low[c&3] & high[c>>2]
			members[row][c] = m
			sum[c] += uint16(bits.OnesCount64(m))
		}
	}
	*totals = sum
}

func listGo(places *[spanWords + rowWords]uint16, changed *uint64, rows int) (n int) {
	for row, x := range unsafe.Slice(changed, rows) {
		for ; x != 0; x &= x - 1 {
			places[n] = uint16(row*rowWords + bits.TrailingZeros64(x))
			n++
		}
	}
	return n
}

func findGo(places *uint16, ranks *uint32, n int, begin, end uint32, before *uint16, members *uint64) int {
	out := unsafe.Slice(places, n)
	first := unsafe.Slice(before, classCount*(spanRows-1)+1)
	found := unsafe.Slice(members, classCount*(spanRows-1)+1)
	row := 0
	for i, rank := range unsafe.Slice(ranks, n) {
		if rank >= end {
			return i
		}
		rank -= begin
		for row+1 < spanRows && uint32(first[(row+1)*classCount]) <= rank {
			row++
		}
		x := found[row*classCount]
		for range rank - uint32(first[row*classCount]) {
			x &= x - 1
		}
		out[i] = uint16(row*rowWords + bits.TrailingZeros64(x))
	}
	return n
}
