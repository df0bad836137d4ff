package bench

import (
	"crypto/subtle"
	"errors"

	"github.com/sparsecast/sparsecast/delta"
)

// writeXOR writes the XOR of both states of every tensor, a part each, and none for one that is as it was.
func writeXOR(p pair) ([][]byte, error) {
	var parts [][]byte
	for t := range p.tensors() {
		var x []byte
		for range t.changed() {
			x = make([]byte, len(t.old))
			subtle.XORBytes(x, t.old, t.new)
			break
		}
		parts = append(parts, x)
	}
	return parts, nil
}

func readXOR(parts [][]byte, into *delta.Memory) error {
	if len(parts) != len(into.Schema().Tensors()) {
		return errors.New("parts and tensors do not match")
	}
	for i, x := range parts {
		b := into.Tensor(i)
		if x == nil {
			continue
		}
		if len(x) != len(b) {
			return errors.New("a part has not the length of its tensor")
		}
		subtle.XORBytes(b, b, x)
	}
	return nil
}
