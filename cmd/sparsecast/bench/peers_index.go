package bench

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sparsecast/sparsecast/delta"
)

// writeIndexes writes for every tensor the number of its changes, their indexes, 32 bits each, and the new values.
func writeIndexes(p pair) ([][]byte, error) {
	var out, values []byte
	for t := range p.tensors() {
		if t.words(t.old) > math.MaxInt32 {
			return nil, fmt.Errorf("tensor %s has more elements than an index of 32 bits can tell: %w", t.Name, errTooLarge)
		}
		at := len(out)
		out, values = binary.LittleEndian.AppendUint32(out, 0), values[:0]
		n := 0
		for i := range t.changed() {
			out = binary.LittleEndian.AppendUint32(out, uint32(i))
			values = append(values, t.value(i)...)
			n++
		}
		binary.LittleEndian.PutUint32(out[at:], uint32(n))
		out = append(out, values...)
	}
	return [][]byte{out}, nil
}

func readIndexes(parts [][]byte, into *delta.Memory) error {
	in := cutter{rest: parts[0]}
	for t, tensor := range into.Schema().Tensors() {
		b, l := into.Tensor(t), layoutOf(tensor.DType)
		indexes := make([]int, in.count(l.words(b)))
		for i := range indexes {
			indexes[i] = in.u32()
		}
		for _, i := range indexes {
			in.put(b, l, i)
		}
	}
	return in.done()
}
