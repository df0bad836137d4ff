package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// edgeCase is one version of a series that no trainer should need and every format allows.
type edgeCase struct {
	name    string
	state   weights
	sharded bool
	changed int // elements that must count as changed; all for a full copy
}

const (
	everything = -1 // elements of an edgeCase: it has another schema, and goes as a full copy
	some       = -2 // any number that is not zero
)

// TestEdgeCases publishes one odd version after the other and compares every rollout by bits after each.
func TestEdgeCases(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	series := edgeCases()
	base := filepath.Join(dir, "base.safetensors")
	if err := series[0].state.save(base); err != nil {
		t.Fatal(err)
	}
	f := newFleet(t, base, 2)
	f.start()
	f.same(base, f.rollouts()...)
	for i, c := range series[1:] {
		path := filepath.Join(dir, fmt.Sprintf("%d.safetensors", i+1))
		if c.sharded {
			path = filepath.Join(dir, fmt.Sprint(i+1))
			half := len(c.state) / 2
			writeShards(t, path, c.state[:half], c.state[half:])
		} else if err := c.state.save(path); err != nil {
			t.Fatal(err)
		}
		v := f.publish(path)
		if v.Number != uint64(i+1) {
			t.Errorf("%s: version %d, want %d", c.name, v.Number, i+1)
		}
		want := uint64(c.changed)
		switch {
		case c.changed == everything:
			want = v.Elements
		case c.changed == some && v.Changed > 0:
			want = v.Changed
		}
		if v.Changed != want || (v.Coded == 0) != (want == 0) {
			t.Errorf("%s: %d of %d elements changed in %d bytes, want %d", c.name, v.Changed, v.Elements, v.Coded, want)
		}
		f.follow(v.VersionInfo, path, f.rollouts()...)
	}
}

// edgeCases returns the series; the first is the base.
func edgeCases() []edgeCase {
	base := oddWeights()
	tiny := tinyWeights()
	series := []edgeCase{{name: "base", state: base}}
	then := func(name string, changed int, edit func(w weights) weights) {
		state := edit(series[len(series)-1].state.clone())
		series = append(series, edgeCase{name: name, state: state, changed: changed})
	}
	then("no change", 0, keep)
	then("all changed", some, func(w weights) weights {
		for _, t := range w {
			for i := range t.data {
				t.data[i] ^= 0x55
			}
		}
		return w
	})
	then("back again", some, func(weights) weights { return base.clone() })
	then("the sign of a zero", 1, func(w weights) weights { w.put("zero", math.Float32bits(float32(math.Copysign(0, -1)))); return w })
	then("another sign of a zero", 1, func(w weights) weights { w.put("zero", 0); return w })
	then("the payload of a NaN", 1, func(w weights) weights { w.put("nan", 0x7fc00002); return w })
	then("a signalling NaN", 1, func(w weights) weights { w.put("nan", 0x7f800001); return w })
	then("a scalar", 1, func(w weights) weights { w.put("scalar", math.Float32bits(2)); return w })
	then("no change again", 0, keep)
	then("a tensor appears", everything, func(w weights) weights {
		return append(w, must(filled("new", "F16", []uint64{3, 3}, "003c")))
	})
	then("a tensor disappears", everything, func(w weights) weights {
		return slices.DeleteFunc(w, func(t tensor) bool { return t.Name == "twin.a" })
	})
	then("another shape of equal bytes", everything, func(w weights) weights { w.find("bf16").Shape = []uint64{100, 20}; return w })
	then("another dtype of equal bytes", everything, func(w weights) weights { w.find("bf16").DType = "F16"; return w })
	series = append(series,
		edgeCase{name: "4000 tiny tensors", state: tiny, changed: everything},
		edgeCase{name: "4000 tiny tensors, one changed", state: tiny.clone().put("layer.1234", 0x40000000), changed: 1},
		edgeCase{name: "the same in shards", state: tiny.clone().put("layer.77", 0x40000000).put("layer.1234", 0x40000000), sharded: true, changed: 1},
		edgeCase{name: "in one file again", state: tiny, changed: 2})
	return series
}

func keep(w weights) weights { return w }

// oddWeights hold every kind of tensor in one checkpoint, and twins that no one may take for each other.
func oddWeights() weights {
	return weights{
		must(filled("bf16", "BF16", []uint64{20, 100}, "803f813f003e")),
		must(filled("f8", "F8_E4M3", []uint64{33}, "38393a")),
		must(filled("scales", "F8_E8M0", []uint64{7}, "7f80")),
		must(filled("ids", "I64", []uint64{5}, "0100000000000000")),
		must(filled("mask", "BOOL", []uint64{9}, "0100")),
		must(filled("zero", "F32", []uint64{4}, "00000000")),
		must(filled("nan", "F32", []uint64{4}, "0100c07f")),
		must(filled("scalar", "F32", nil, "0000803f")),
		must(filled("empty", "BF16", []uint64{0, 16}, "")),
		must(filled("twin.a", "F32", []uint64{64}, "cdcc4c3e")),
		must(filled("twin.b", "F32", []uint64{64}, "cdcc4c3e")),
		raw("unheard", "FP3_E1M1", []uint64{8}, []byte{1, 2, 3}),
	}
}

func tinyWeights() weights {
	var w weights
	for i := range 4000 {
		w = append(w, must(filled(fmt.Sprintf("layer.%d", i), "F32", []uint64{1 + uint64(i%3)}, "0000803f")))
	}
	return w
}

func (w weights) clone() weights {
	c := slices.Clone(w)
	for i := range c {
		c[i].data = slices.Clone(c[i].data)
		c[i].Shape = slices.Clone(c[i].Shape)
	}
	return c
}

func (w weights) find(name string) *tensor {
	return &w[slices.IndexFunc(w, func(t tensor) bool { return t.Name == name })]
}

// put sets the first four bytes of a tensor and returns w.
func (w weights) put(name string, bits uint32) weights {
	binary.LittleEndian.PutUint32(w.find(name).data, bits)
	return w
}

func must(t tensor, err error) tensor {
	if err != nil {
		panic(err) // a mistake in a table of this package
	}
	return t
}

func shardName(i int) string { return fmt.Sprintf("model-%05d-of-00002.safetensors", i) }

// writeShards writes a directory as Hugging Face lays it out, in two shards.
func writeShards(t *testing.T, dir string, parts ...weights) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	places := map[string]string{}
	for i, part := range parts {
		if err := part.save(filepath.Join(dir, shardName(i+1))); err != nil {
			t.Fatal(err)
		}
		for _, tensor := range part {
			places[tensor.Name] = shardName(i + 1)
		}
	}
	index, err := json.Marshal(map[string]any{"metadata": map[string]any{}, "weight_map": places})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), index, 0o600); err != nil {
		t.Fatal(err)
	}
}
