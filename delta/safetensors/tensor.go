package safetensors

import (
	"errors"
	"fmt"
	"math/bits"
)

const (
	// metadataKey is where a header keeps its free-form strings; no tensor can be called that.
	metadataKey = "__metadata__"
	// maxDims bounds the dimensions of a tensor, as PyTorch and NumPy do.
	maxDims = 64
)

// Tensor describes one tensor of a checkpoint.
type Tensor struct {
	Name  string
	DType string   // as written in the file: "BF16", "F8_E4M3", and also what this package does not know
	Shape []uint64 // row-major; empty for a scalar
	Size  int64    // bytes
}

// check reports the first rule that t breaks. Reading and writing both apply it.
func (t *Tensor) check() error {
	if t.Name == metadataKey {
		return errors.New("this name is reserved for metadata")
	}
	if !validText(t.Name, t.DType) {
		return errors.New("name or dtype is not valid UTF-8")
	}
	if t.Size < 0 {
		return fmt.Errorf("negative size of %d bytes", t.Size)
	}
	want, known, err := byteSize(t.DType, t.Shape)
	if err != nil {
		return err
	}
	if known && uint64(t.Size) != want {
		return fmt.Errorf("%d bytes, but shape %v of %s takes %d", t.Size, t.Shape, t.DType, want)
	}
	return nil
}

// byteSize returns what a shape takes in bytes; known is false when the dtype is not, which leaves the size open.
func byteSize(dtype string, shape []uint64) (size uint64, known bool, err error) {
	if len(shape) > maxDims {
		return 0, false, fmt.Errorf("%d dimensions, at most %d", len(shape), maxDims)
	}
	n := uint64(1)
	for _, d := range shape {
		hi, lo := bits.Mul64(n, d)
		if hi != 0 {
			return 0, false, fmt.Errorf("shape %v overflows 64 bits", shape)
		}
		n = lo
	}
	width, known := BitWidth(dtype)
	if !known {
		return 0, false, nil
	}
	hi, total := bits.Mul64(n, uint64(width))
	if hi != 0 {
		return 0, true, fmt.Errorf("shape %v of %s overflows 64 bits", shape, dtype)
	}
	if total%8 != 0 {
		return 0, true, fmt.Errorf("shape %v of %s ends inside a byte", shape, dtype)
	}
	return total / 8, true, nil
}
