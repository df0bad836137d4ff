package delta

// The functions here choose the width once a block; everything inside runs on words of one type.

func newSparseEncoder(width int) sparseWriter {
	switch width {
	case 1:
		return &sparseEncoder[uint8]{}
	case 2:
		return &sparseEncoder[uint16]{}
	case 4:
		return &sparseEncoder[uint32]{}
	default:
		return &sparseEncoder[uint64]{}
	}
}

func newSparseDecoder(width int) sparseReader {
	switch width {
	case 1:
		return &sparseDecoder[uint8]{}
	case 2:
		return &sparseDecoder[uint16]{}
	case 4:
		return &sparseDecoder[uint32]{}
	default:
		return &sparseDecoder[uint64]{}
	}
}

func countExponentsOf(n *exponents, old, new []byte, c coding) (seen int) {
	switch c.width {
	case 1:
		return countExponents(n, wordsOf[uint8](old), wordsOf[uint8](new), c)
	case 2:
		return countExponents(n, wordsOf[uint16](old), wordsOf[uint16](new), c)
	case 4:
		return countExponents(n, wordsOf[uint32](old), wordsOf[uint32](new), c)
	default:
		return countExponents(n, wordsOf[uint64](old), wordsOf[uint64](new), c)
	}
}

func appendPlaneOf(dst, block []byte, plane int, c coding) []byte {
	switch c.width {
	case 1:
		return appendPlane(dst, wordsOf[uint8](block), plane, c.float)
	case 2:
		return appendPlane(dst, wordsOf[uint16](block), plane, c.float)
	case 4:
		return appendPlane(dst, wordsOf[uint32](block), plane, c.float)
	default:
		return appendPlane(dst, wordsOf[uint64](block), plane, c.float)
	}
}

func joinPlanesOf(block []byte, planes *[8][]byte, c coding) {
	switch c.width {
	case 1:
		joinPlanes(wordsOf[uint8](block), planes, c.float)
	case 2:
		joinPlanes(wordsOf[uint16](block), planes, c.float)
	case 4:
		joinPlanes(wordsOf[uint32](block), planes, c.float)
	default:
		joinPlanes(wordsOf[uint64](block), planes, c.float)
	}
}
