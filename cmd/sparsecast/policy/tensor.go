package policy

// The spreads below were set against recorded GRPO runs; see the package comment.
const (
	weightSpread   = 0.022 // of a typical projection
	normSpread     = 0.05  // around one
	tensorVariety  = 0.3   // spread of a tensor's scale, in powers of two
	rowVariety     = 0.12  // and of a row's
	gradientSpread = 1e-5  // of a typical tensor's gradient noise; far above Adam's ε
	gradientRange  = 1.0   // spread of its scale by tensor, in powers of two
)

// Generators are keyed by seed, tensor and one of these, then by row, block or update.
const (
	keyTensor = iota
	keyRow
	keyStart
	keyUpdate
)

// blockLen is how many consecutive elements of a tensor are computed together. A block's arrays fit a core's
// second-level cache. It shapes the bytes: another length gives another policy.
const blockLen = 16 << 10

// tensor is a layout with the scales that its elements share.
type tensor struct {
	layout
	index    int
	place    uint64  // where its generators branch off
	first    int64   // number of its first block among all blocks
	weight   float32 // spread of the weights
	gradient float32 // spread of the gradient noise
}

func newTensor(seed uint64, index int, l layout, first int64) tensor {
	t := tensor{layout: l, index: index, place: branch(seed, uint64(index)), first: first}
	r := t.random(keyTensor)
	t.weight = weightSpread * r.lognormal(tensorVariety)
	t.gradient = gradientSpread * r.lognormal(gradientRange)
	return t
}

func (t *tensor) random(words ...uint64) random { return random(branch(t.place, words...)) }

// blocks returns the number of blocks; the last may be short.
func (t *tensor) blocks() int64 { return (t.elements() + blockLen - 1) / blockLen }

// row returns the spread of a row's weights and whether no gradient ever reaches it. Tokenizers number words by
// falling frequency, so the later an embedding row, the more likely it is unused.
func (t *tensor) row(i int64) (weight float32, unused bool) {
	r := t.random(keyRow, uint64(i))
	weight = t.weight * r.lognormal(rowVariety)
	unused = t.kind == embedding && int64(r.next()%uint64(t.rows)) < i
	return weight, unused
}
