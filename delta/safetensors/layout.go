package safetensors

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// layout is a file about to be written.
type layout struct {
	head   []byte  // length and header
	places []int64 // where each tensor begins in the file, in the caller's order
	size   int64   // of the whole file
}

// newLayout places tensors as the reference implementation does, byte for byte: by dtype from wide to narrow,
// then by name, without gaps; the header is padded so that the data begins at a multiple of 8.
func newLayout(tensors []Tensor, metadata map[string]string) (*layout, error) {
	order, err := fileOrder(tensors)
	if err != nil {
		return nil, err
	}
	offsets := make([]int64, len(tensors))
	total := int64(0)
	for _, i := range order {
		if tensors[i].Size > maxFile-maxHeader-prefix-total {
			return nil, fmt.Errorf("tensor %s: more than %d bytes in one file", quote(tensors[i].Name), int64(maxFile))
		}
		offsets[i] = total
		total += tensors[i].Size
	}
	head, err := appendHeader(make([]byte, prefix), tensors, order, offsets, metadata)
	if err != nil {
		return nil, err
	}
	for i := range offsets {
		offsets[i] += int64(len(head))
	}
	return &layout{head, offsets, int64(len(head)) + total}, nil
}

// fileOrder checks the tensors and returns their indices in the order of the file.
func fileOrder(tensors []Tensor) ([]int, error) {
	if len(tensors) > maxTensors {
		return nil, fmt.Errorf("%d tensors, at most %d", len(tensors), maxTensors)
	}
	names := make(map[string]struct{}, len(tensors))
	order := make([]int, len(tensors))
	for i := range tensors {
		t := &tensors[i]
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("tensor %s: %w", quote(t.Name), err)
		}
		if _, twice := names[t.Name]; twice {
			return nil, fmt.Errorf("tensor %s: given twice", quote(t.Name))
		}
		names[t.Name] = struct{}{}
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := &tensors[a], &tensors[b]
		return cmp.Or(cmp.Compare(rank(y.DType), rank(x.DType)), cmp.Compare(x.Name, y.Name))
	})
	return order, nil
}

// appendHeader appends the padded header to b, which holds room for its length, and fills that in.
func appendHeader(b []byte, tensors []Tensor, order []int, offsets []int64, metadata map[string]string) ([]byte, error) {
	b, err := appendMetadata(append(b, '{'), metadata)
	if err != nil {
		return nil, err
	}
	for _, i := range order {
		if len(b)+len(tensors[i].Name)+len(tensors[i].DType) > maxHeader {
			return nil, fmt.Errorf("header of %d tensors takes more than %d bytes; split the checkpoint", len(tensors), maxHeader)
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = appendEntry(b, &tensors[i], offsets[i])
	}
	b = append(b, '}')
	for len(b)%8 != 0 {
		b = append(b, ' ')
	}
	if len(b) > prefix+maxHeader {
		return nil, fmt.Errorf("header of %d tensors takes more than %d bytes; split the checkpoint", len(tensors), maxHeader)
	}
	binary.LittleEndian.PutUint64(b, uint64(len(b)-prefix))
	return b, nil
}

// appendMetadata appends the free-form strings, sorted so that equal metadata gives equal files.
func appendMetadata(b []byte, metadata map[string]string) ([]byte, error) {
	if metadata == nil {
		return b, nil
	}
	b = append(appendString(b, metadataKey), ":{"...)
	var count metadataCount
	for i, key := range slices.Sorted(maps.Keys(metadata)) {
		if !validText(key, metadata[key]) {
			return nil, fmt.Errorf("metadata %s: key or value is not valid UTF-8", quote(key))
		}
		if err := count.add(key, metadata[key]); err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, key), ':')
		b = appendString(b, metadata[key])
	}
	return append(b, '}'), nil
}

// appendEntry appends the description of one tensor.
func appendEntry(b []byte, t *Tensor, off int64) []byte {
	b = append(appendString(b, t.Name), `:{"dtype":`...)
	b = append(appendString(b, t.DType), `,"shape":[`...)
	for i, d := range t.Shape {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, d, 10)
	}
	b = append(b, `],"data_offsets":[`...)
	b = append(strconv.AppendInt(b, off, 10), ',')
	b = strconv.AppendInt(b, off+t.Size, 10)
	return append(b, "]}"...)
}

// appendString appends s as JSON with the escapes that the reference uses; encoding/json would escape more.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, c := range []byte(s) {
		if c >= 0x20 && c != '"' && c != '\\' {
			b = append(b, c)
		} else if at := strings.IndexByte("\b\t\n\f\r\"\\", c); at >= 0 {
			b = append(b, '\\', `btnfr"\`[at])
		} else {
			b = append(b, `\u00`...)
			b = hex.AppendEncode(b, []byte{c})
		}
	}
	return append(b, '"')
}
