package bench

import (
	"encoding/binary"
	"math"

	"github.com/sparsecast/sparsecast/delta"
)

// Grail looks at a tensor as rows, along its first dimension, and columns, all the others. A change is told by how many
// rows it is behind the one before, and by its column: how far behind the one before in the same row, else from the
// begin. Row gaps of a tensor take a byte each when all of them fit, else four; column gaps two, else four. Its header,
// JSON with the number of changes among others, is a number and a byte of flags here.

// writeGrail writes for every tensor the number of its changes, the widths of gaps, row gaps, column gaps and values.
func writeGrail(p pair) ([][]byte, error) {
	var out []byte
	for t := range p.tensors() {
		g := gapsOf(t)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(g.rows)))
		if len(g.rows) == 0 {
			continue // left out
		}
		wideRows, wideColumns := most(g.rows) > math.MaxUint8, most(g.columns) > math.MaxUint16
		out = append(out, bit(wideRows)|bit(wideColumns)<<1)
		for _, n := range g.rows {
			if wideRows {
				out = binary.LittleEndian.AppendUint32(out, n)
			} else {
				out = append(out, byte(n))
			}
		}
		for _, n := range g.columns {
			if wideColumns {
				out = binary.LittleEndian.AppendUint32(out, n)
			} else {
				out = binary.LittleEndian.AppendUint16(out, uint16(n))
			}
		}
		out = append(out, g.values...)
	}
	return [][]byte{out}, nil
}

// grailGaps are the changes of a tensor.
type grailGaps struct {
	rows, columns []uint32
	values        []byte
}

func gapsOf(t tensor) (g grailGaps) {
	columns := rowLength(t.Tensor, t.layout)
	row, column := 0, 0 // of the change before
	for i := range t.changed() {
		r, c := i/columns, i%columns
		if r != row {
			column = 0
		}
		g.rows = append(g.rows, uint32(r-row))
		g.columns = append(g.columns, uint32(c-column))
		g.values = append(g.values, t.value(i)...)
		row, column = r, c
	}
	return g
}

// rowLength returns the number of words in a row of a tensor: all of them where its rows are no whole words.
func rowLength(t delta.Tensor, l layout) int {
	words := int(t.Size) / l.width
	if len(t.Shape) == 0 || t.Shape[0] == 0 || words%int(t.Shape[0]) != 0 {
		return max(1, words)
	}
	return max(1, words/int(t.Shape[0]))
}

func most(gaps []uint32) (n uint32) {
	for _, g := range gaps {
		n = max(n, g)
	}
	return n
}

func bit(set bool) byte {
	if set {
		return 1
	}
	return 0
}

func readGrail(parts [][]byte, into *delta.Memory) error {
	in := cutter{rest: parts[0]}
	for t, tensor := range into.Schema().Tensors() {
		b, l := into.Tensor(t), layoutOf(tensor.DType)
		n := in.count(l.words(b))
		if n == 0 {
			continue
		}
		flags := in.u8()
		rows, columns := make([]int, n), make([]int, n)
		for i := range rows {
			if flags&1 != 0 {
				rows[i] = in.u32()
			} else {
				rows[i] = in.u8()
			}
		}
		for i := range columns {
			if flags&2 != 0 {
				columns[i] = in.u32()
			} else {
				columns[i] = in.u16()
			}
		}
		begin, column := 0, 0 // of the row, of the change before
		for i, gap := range rows {
			if gap != 0 {
				begin, column = begin+gap*rowLength(tensor, l), 0
			}
			column += columns[i]
			in.put(b, l, begin+column)
		}
	}
	return in.done()
}
