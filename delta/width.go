package delta

// widths is the number of word widths: 1, 2, 4 and 8 bytes.
const widths = 4

// The functions here choose the width once a tile; everything inside runs on words of one type.

func findChanges(pos []uint32, old, new []byte, c coding, seen *exponents) []uint32 {
	switch c.width {
	case 1:
		return changesOf[uint8](pos, old, new, c, seen)
	case 2:
		return changesOf[uint16](pos, old, new, c, seen)
	case 4:
		return changesOf[uint32](pos, old, new, c, seen)
	default:
		return changesOf[uint64](pos, old, new, c, seen)
	}
}

func changesOf[T word](pos []uint32, old, new []byte, c coding, seen *exponents) []uint32 {
	pos = appendChanged(pos, wordsOf[T](old), wordsOf[T](new))
	countExponents(seen, wordsOf[T](old), pos, c)
	return pos
}

func writeChanges(s *sections, old, new []byte, pos []uint32, c coding, floor uint8) {
	k := newClassifier(c, floor)
	switch c.width {
	case 1:
		writeSparse(s, wordsOf[uint8](old), wordsOf[uint8](new), pos, k, c.float)
	case 2:
		writeSparse(s, wordsOf[uint16](old), wordsOf[uint16](new), pos, k, c.float)
	case 4:
		writeSparse(s, wordsOf[uint32](old), wordsOf[uint32](new), pos, k, c.float)
	default:
		writeSparse(s, wordsOf[uint64](old), wordsOf[uint64](new), pos, k, c.float)
	}
}

func readChanges(s *[sectionCount]cursor, old, new []byte, c coding, floor uint8) (int, error) {
	k := newClassifier(c, floor)
	switch c.width {
	case 1:
		return readSparse(s, wordsOf[uint8](old), wordsOf[uint8](new), k, 1, c.float)
	case 2:
		return readSparse(s, wordsOf[uint16](old), wordsOf[uint16](new), k, 2, c.float)
	case 4:
		return readSparse(s, wordsOf[uint32](old), wordsOf[uint32](new), k, 4, c.float)
	default:
		return readSparse(s, wordsOf[uint64](old), wordsOf[uint64](new), k, 8, c.float)
	}
}
