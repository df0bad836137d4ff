package bench

import (
	"fmt"
	"testing"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/delta/safetensors"
	"pgregory.net/rapid"
)

// dtypes are of every width, with and without an exponent, of less than a byte, and one that nobody knows.
var dtypes = []string{"BF16", "F16", "F32", "F64", "C64", "F8_E4M3", "F8_E5M2", "F8_E8M0", "I64", "U16", "U8", "BOOL", "F4"}

// anyPair draws two states of a few tensors of odd dtypes and shapes, of which few or many or no elements differ.
func anyPair(t testing.TB, rt *rapid.T) pair {
	var list []delta.Tensor
	for i := range rapid.IntRange(1, 4).Draw(rt, "tensors") {
		shape := rapid.SliceOfN(rapid.Uint64Range(0, 19), 0, 3).Draw(rt, "shape")
		dtype := rapid.SampledFrom(dtypes).Draw(rt, "dtype")
		bits, known := safetensors.BitWidth(dtype)
		if !known {
			t.Fatalf("dtype %s is unknown", dtype)
		}
		if bits < 8 {
			shape = append(shape, 2)
		}
		for _, n := range shape {
			bits *= int(n)
		}
		list = append(list, delta.Tensor{Name: fmt.Sprintf("t%d", i), DType: dtype, Shape: shape, Size: int64(bits / 8)})
	}
	schema, err := delta.NewSchema(list)
	if err != nil {
		t.Fatal(err)
	}
	p := pair{delta.NewMemory(schema), delta.NewMemory(schema)}
	random := rapid.Byte()
	for tensor := range p.tensors() {
		few := rapid.IntRange(1, 300).Draw(rt, "one in")
		seed := rapid.Uint64().Draw(rt, "seed") | 1
		zeros := random.Draw(rt, "zeros")
		for i := range tensor.old {
			seed = seed*6364136223846793005 + 1442695040888963407
			if tensor.old[i] = byte(seed >> 56); tensor.old[i] < zeros {
				tensor.old[i] = 0
			}
			tensor.new[i] = tensor.old[i]
			if int(seed>>33)%few == 0 {
				tensor.new[i] ^= byte(seed >> 40)
			}
		}
	}
	return p
}

// TestElementsAreTheCodecs has the codec count what this package counts.
func TestElementsAreTheCodecs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := anyPair(t, rt)
		var elements, changed, bytewise uint64
		for tensor := range p.tensors() {
			elements += uint64(tensor.words(tensor.old))
			for range tensor.changed() {
				changed++
			}
			for i := range tensor.words(tensor.old) {
				if string(tensor.value(i)) != string(tensor.old[i*tensor.width:(i+1)*tensor.width]) {
					bytewise++
				}
			}
		}
		e, err := measureEdge(t.Context(), p)
		if err != nil {
			rt.Fatal(err)
		}
		if e.Elements != elements || e.Changed != changed || changed != bytewise {
			rt.Errorf("%d of %d words changed, %d by their bytes; the codec says %d of %d", changed, elements, bytewise, e.Changed, e.Elements)
		}
	})
}
