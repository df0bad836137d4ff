package sim

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/sparsecast/sparsecast/delta"
)

// sum is the SHA-256 over names, dtypes, shapes and bytes of all tensors: what an engine would load.
type sum [sha256.Size]byte

// form is what all weights of a run have in common.
type form struct {
	layers bool // each layer is a group of its own
	states bool // there are two states, with a name each
	large  bool // they take several pages of a disk, so that a part of a file can be lost
}

// String is for readers of a plan.
func (f form) String() string {
	s := "weights of one state"
	if f.states {
		s = "weights of two states"
	}
	if f.large {
		s += ", large"
	}
	if f.layers {
		s += ", grouped by layer"
	}
	return s
}

// names returns the names of the states, as directories have them: the only one has none.
func (f form) names() []string {
	if f.states {
		return []string{"draft", "policy"}
	}
	return []string{""}
}

// pages is by how much the first tensor of large weights is larger.
const pages = 5

// schema returns what the tensors of a shape are called where: of two states each takes every other one.
func (f form) schema(shape []delta.Tensor) (*delta.Schema, error) {
	list := make([]delta.StateTensors, len(f.names()))
	for i, name := range f.names() {
		list[i].Name = name
	}
	for i, t := range shape {
		if i == 0 && f.large {
			t.Shape, t.Size = []uint64{pages * t.Shape[0], t.Shape[1]}, pages*t.Size
		}
		s := &list[i%len(list)]
		s.Tensors = append(s.Tensors, t)
	}
	if f.layers {
		return delta.NewSchemaOf(list, delta.GroupByLayer)
	}
	return delta.NewSchemaOf(list, nil)
}

// weights are one version of the model that a simulated training run holds.
type weights struct {
	form    form
	schema  *delta.Schema
	tensors [][]byte // in the order of the schema
}

// shapes are the models of the simulation: small, of several dtypes, with a scalar and an empty tensor.
var shapes = [][]delta.Tensor{
	{
		{Name: "embed.weight", DType: "BF16", Shape: []uint64{48, 16}, Size: 1536},
		{Name: "layers.0.norm", DType: "F32", Shape: []uint64{37}, Size: 148},
		{Name: "layers.0.proj", DType: "F8_E4M3", Shape: []uint64{31, 9}, Size: 279},
		{Name: "layers.0.scale", DType: "F32", Shape: []uint64{}, Size: 4},
		{Name: "nothing", DType: "BF16", Shape: []uint64{0, 4}, Size: 0},
		{Name: "steps", DType: "I64", Shape: []uint64{3}, Size: 24},
	},
	{
		{Name: "embed.weight", DType: "BF16", Shape: []uint64{64, 16}, Size: 2048},
		{Name: "layers.0.norm", DType: "F16", Shape: []uint64{37}, Size: 74},
		{Name: "steps", DType: "I64", Shape: []uint64{3}, Size: 24},
	},
}

// newWeights draws whole weights of the given shape.
func newWeights(rng *rand.Rand, f form, shape int) *weights {
	schema, err := f.schema(shapes[shape%len(shapes)])
	if err != nil {
		panic(err) // the table above is ours
	}
	w := &weights{form: f, schema: schema}
	for _, t := range schema.Tensors() {
		b := make([]byte, t.Size)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		w.tensors = append(w.tensors, b)
	}
	return w
}

// change is how a training step alters the weights.
type change string

const (
	sparse  change = "sparse"      // a few elements
	nothing change = "nothing"     // the same again
	dense   change = "everything"  // every byte drawn anew
	reshape change = "a new shape" // another schema
	undo    change = "all back"    // to the state before
)

// next returns the state after a step.
func (w *weights) next(rng *rand.Rand, c change) *weights {
	switch c {
	case nothing:
		return w
	case dense:
		return newWeights(rng, w.form, w.shape())
	case reshape:
		return newWeights(rng, w.form, w.shape()+1)
	}
	n := &weights{form: w.form, schema: w.schema, tensors: make([][]byte, len(w.tensors))}
	for i, b := range w.tensors {
		n.tensors[i] = slices.Clone(b)
	}
	for range 1 + rng.IntN(24) {
		if b := n.tensors[rng.IntN(len(n.tensors))]; len(b) > 0 {
			b[rng.IntN(len(b))] += byte(1 + rng.IntN(255))
		}
	}
	return n
}

func (w *weights) shape() int {
	return slices.IndexFunc(shapes, func(s []delta.Tensor) bool { return len(s) == len(w.tensors) })
}

// Schema is part of delta.State.
func (w *weights) Schema() *delta.Schema { return w.schema }

// ReadAt is part of delta.State.
func (w *weights) ReadAt(t int, p []byte, off int64) error {
	copy(p, w.tensors[t][off:])
	return nil
}

func (w *weights) root() delta.Root {
	root, err := delta.RootOf(context.Background(), w, nil)
	if err != nil {
		panic(err) // memory does not fail
	}
	return root
}

// entry is how a safetensors header describes a tensor.
type entry struct {
	DType   string   `json:"dtype"`
	Shape   []uint64 `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// files returns w as safetensors files, one a state. They are written, and read below, without the product's own code.
func (w *weights) files() map[string][]byte {
	list := make(map[string][]byte)
	for _, s := range w.schema.States() {
		list[s.Name] = file(w.schema.Tensors()[s.First:s.First+s.Count], w.tensors[s.First:s.First+s.Count])
	}
	return list
}

func file(tensors []delta.Tensor, bytes [][]byte) []byte {
	header, at := make(map[string]entry), int64(0)
	for _, t := range tensors {
		header[t.Name] = entry{t.DType, t.Shape, [2]int64{at, at + t.Size}}
		at += t.Size
	}
	h, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	for len(h)%8 != 0 {
		h = append(h, ' ')
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(h)))
	b = append(b, h...)
	for _, t := range bytes {
		b = append(b, t...)
	}
	return b
}

func (w *weights) sum() sum {
	s, err := sumOf(w.files())
	if err != nil {
		panic(err)
	}
	return s
}

// sumOf reads the safetensors files of all states as an engine does.
func sumOf(files map[string][]byte) (sum, error) {
	h := sha256.New()
	for _, state := range slices.Sorted(maps.Keys(files)) {
		if err := addFile(h, state, files[state]); err != nil {
			return sum{}, err
		}
	}
	return sum(h.Sum(nil)), nil
}

// addFile adds what a safetensors file holds to a sum.
func addFile(h io.Writer, state string, file []byte) error {
	if len(file) < 8 {
		return fmt.Errorf("a file of %d bytes is no checkpoint", len(file))
	}
	n := binary.LittleEndian.Uint64(file)
	if n > uint64(len(file)-8) {
		return fmt.Errorf("a header of %d bytes in a file of %d", n, len(file))
	}
	raw := make(map[string]json.RawMessage)
	if err := json.Unmarshal(file[8:8+n], &raw); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	data := file[8+n:]
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		if name == "__metadata__" {
			continue
		}
		var e entry
		if err := json.Unmarshal(raw[name], &e); err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		if from, to := e.Offsets[0], e.Offsets[1]; from < 0 || to < from || to > int64(len(data)) {
			return fmt.Errorf("tensor %q lies at %v of %d bytes", name, e.Offsets, len(data))
		}
		_, _ = fmt.Fprintf(h, "%q %q %s %v %d\n", state, name, e.DType, e.Shape, e.Offsets[1]-e.Offsets[0])
		_, _ = h.Write(data[e.Offsets[0]:e.Offsets[1]]) // a sum does not fail
	}
	return nil
}
