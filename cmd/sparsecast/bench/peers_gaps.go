package bench

import (
	"encoding/binary"

	"github.com/sparsecast/sparsecast/delta"
)

// escape stands for as many unchanged words as it says, and that the gap goes on.
const escape = 255

// writeGaps writes for every tensor the number of its changes, the gap of unchanged words before each, and the new values.
func writeGaps(p pair) ([][]byte, error) {
	var out, values []byte
	for t := range p.tensors() {
		at := len(out)
		out, values = binary.LittleEndian.AppendUint32(out, 0), values[:0]
		n, next := 0, 0
		for i := range t.changed() {
			out = appendGap(out, i-next)
			values = append(values, t.value(i)...)
			n, next = n+1, i+1
		}
		binary.LittleEndian.PutUint32(out[at:], uint32(n))
		out = append(out, values...)
	}
	return [][]byte{out}, nil
}

func appendGap(out []byte, gap int) []byte {
	for ; gap >= escape; gap -= escape {
		out = append(out, escape)
	}
	return append(out, byte(gap))
}

func readGaps(parts [][]byte, into *delta.Memory) error {
	in := cutter{rest: parts[0]}
	for t, tensor := range into.Schema().Tensors() {
		b, l := into.Tensor(t), layoutOf(tensor.DType)
		indexes := make([]int, in.count(l.words(b)))
		next := 0
		for i := range indexes {
			g := in.u8()
			for ; g == escape; g = in.u8() {
				next += escape
			}
			indexes[i] = next + g
			next = indexes[i] + 1
		}
		for _, i := range indexes {
			in.put(b, l, i)
		}
	}
	return in.done()
}
