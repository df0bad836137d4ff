package delta

import "unsafe"

// word is an element as the codec sees it: its bit pattern, little-endian. All the machines that weights live on
// (amd64, arm64) are little-endian, and TestLittleEndian fails on others.
type word interface {
	uint8 | uint16 | uint32 | uint64
}

// wordsOf looks at b as words of type T without copying. Its begin must be aligned for T, as in a frameBuffer.
func wordsOf[T word](b []byte) []T {
	size := int(unsafe.Sizeof(*new(T)))
	if len(b) < size {
		return nil
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(p)%uintptr(size) != 0 {
		panic("delta: words at an odd address") // our own buffers are aligned
	}
	return unsafe.Slice((*T)(p), len(b)/size)
}

// bytesOf looks at w as bytes.
func bytesOf(w []uint64) []byte {
	if len(w) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), 8*len(w))
}

// wordBytes looks at w as bytes.
func wordBytes[T word](w []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), len(w)*int(unsafe.Sizeof(T(0))))
}
