package policy

import (
	"fmt"
	"math"
)

// kind tells how a tensor's elements start and move.
type kind uint8

const (
	projection kind = iota
	embedding       // rows that no text uses stay as they are
	norm            // near one instead of near zero
)

// layout is one tensor of the policy: rows x cols, row-major; a norm has one row.
type layout struct {
	name       string
	kind       kind
	rows, cols int64
}

func (l layout) elements() int64 { return l.rows * l.cols }

// dims are the numbers that a Llama configuration gives.
type dims struct {
	hidden, kv, inner, layers, vocab int64
}

// choose finds dimensions for a policy of about the given number of elements. Width and depth grow together, as
// they do in published families, and the vocabulary takes what whole layers leave over.
func choose(elements int64) dims {
	d := dims{hidden: width(elements)}
	d.kv = d.hidden / 4
	d.inner = d.hidden * 11 / 4
	words := min(elements*15/100/(2*d.hidden), 128<<10)
	body := elements - d.hidden
	d.layers = max(1, (body-2*d.hidden*words)/d.layer())
	d.vocab = max(16, (body-d.layers*d.layer())/(2*d.hidden)/16*16)
	return d
}

// width returns the hidden size: a hundred and twenty-eighth of a layer for each unit, but four layers at least.
// A layer has about 10.75 hidden² elements.
func width(elements int64) int64 {
	body := float64(elements) * 0.85 / 10.75
	h := int64(min(math.Sqrt(body/4), math.Cbrt(body*128)))
	if h < 1024 {
		return max(16, h/16*16)
	}
	return h / 128 * 128
}

// layer returns the elements of one transformer layer.
func (d dims) layer() int64 {
	return 2*d.hidden*(d.hidden+d.kv) + 3*d.hidden*d.inner + 2*d.hidden
}

// layouts lists the tensors in the order of a checkpoint.
func (d dims) layouts() []layout {
	ls := []layout{{"model.embed_tokens.weight", embedding, d.vocab, d.hidden}}
	for i := range d.layers {
		at := func(part string) string { return fmt.Sprintf("model.layers.%d.%s.weight", i, part) }
		ls = append(ls,
			layout{at("self_attn.q_proj"), projection, d.hidden, d.hidden},
			layout{at("self_attn.k_proj"), projection, d.kv, d.hidden},
			layout{at("self_attn.v_proj"), projection, d.kv, d.hidden},
			layout{at("self_attn.o_proj"), projection, d.hidden, d.hidden},
			layout{at("mlp.gate_proj"), projection, d.inner, d.hidden},
			layout{at("mlp.up_proj"), projection, d.inner, d.hidden},
			layout{at("mlp.down_proj"), projection, d.hidden, d.inner},
			layout{at("input_layernorm"), norm, 1, d.hidden},
			layout{at("post_attention_layernorm"), norm, 1, d.hidden},
		)
	}
	return append(ls,
		layout{"model.norm.weight", norm, 1, d.hidden},
		layout{"lm_head.weight", projection, d.vocab, d.hidden})
}
