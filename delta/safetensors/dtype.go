package safetensors

// dtypes lists every element type of the format by the reference's alignment order, lowest first:
// a file is laid out from the last to the first, so that wide elements stay aligned.
var dtypes = []struct {
	name string
	bits int
}{
	{"BOOL", 8},
	{"F4", 4},
	{"F6_E2M3", 6},
	{"F6_E3M2", 6},
	{"U8", 8},
	{"I8", 8},
	{"F8_E5M2", 8},
	{"F8_E4M3", 8},
	{"F8_E8M0", 8},
	{"F8_E4M3FNUZ", 8},
	{"F8_E5M2FNUZ", 8},
	{"I16", 16},
	{"U16", 16},
	{"F16", 16},
	{"BF16", 16},
	{"I32", 32},
	{"U32", 32},
	{"F32", 32},
	{"C64", 64},
	{"F64", 64},
	{"I64", 64},
	{"U64", 64},
}

// ranks gives the place of each name in dtypes.
var ranks = func() map[string]int {
	m := make(map[string]int, len(dtypes))
	for i, d := range dtypes {
		m[d.name] = i
	}
	return m
}()

// BitWidth returns the bits that one element of a dtype takes, and whether the format knows that dtype.
func BitWidth(dtype string) (bits int, known bool) {
	i, known := ranks[dtype]
	if !known {
		return 0, false
	}
	return dtypes[i].bits, true
}

// rank orders dtypes by alignment. Unknown ones come last in a file, where they can push nothing off its alignment.
func rank(dtype string) int {
	if i, known := ranks[dtype]; known {
		return i
	}
	return -1
}
