package delta

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// An update in place that was cut short goes on from what it left: blocks that are old, new, and a mixture.
func TestSalvage(t *testing.T) {
	schema, err := NewSchema([]Tensor{tensorOf("w", "BF16", 2, 40*BlockWords/1000, 1000)})
	if err != nil {
		t.Fatal(err)
	}
	old, new := randomState(rand.New(rand.NewPCG(1, 2)), schema, 0.01)
	rung := writeEdge(t, spoolFile(t), old, new).rung(t, schema, nil, nil)
	want, _ := rung.Outboard.Digests()
	for cut := 0; cut < 40; cut += 7 {
		slot := clone(old)
		at := cut*2*BlockWords + cut*997 // blocks before are new, this one is torn
		copy(slot.tensors[0], new.tensors[0][:at])
		have, err := DigestsOf(t.Context(), slot, nil)
		if err != nil {
			t.Fatal(err)
		}
		wanted := have.Diff(want)
		left, err := Salvage(t.Context(), schema, wanted, slot, []Rung{rung}, slot, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range left {
			if !slices.Contains(wanted, b) {
				t.Errorf("cut in block %d: block %d was left, which was not asked for", cut, b)
			}
		}
		if cut < 20 && len(left) > len(wanted)/2 {
			t.Errorf("cut in block %d: %d of %d blocks are left", cut, len(left), len(wanted))
		}
		if have, err = DigestsOf(t.Context(), slot, nil); err != nil || !slices.Equal(have.Diff(want), left) {
			t.Errorf("cut in block %d: %v differ, said %v, %v", cut, have.Diff(want), left, err)
		}
		if len(left) > 0 {
			if err := Rebuild(t.Context(), schema, left, old, []Rung{rung}, slot); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(slot.tensors[0], new.tensors[0]) {
			t.Errorf("cut in block %d: not the new state", cut)
		}
	}
}
