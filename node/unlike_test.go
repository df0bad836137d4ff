package node

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/delta/safetensors"
	"github.com/sparsecast/sparsecast/mesh"
)

// Every way in which a version can be unlike the one before is told by what differs, and first of all by name.
func TestUnlikeSchemasAreTold(t *testing.T) {
	schema := func(cut delta.Cutting, states ...delta.StateTensors) *delta.Schema {
		s, err := delta.NewSchemaOf(states, cut)
		try(t, err)
		return s
	}
	w := delta.Tensor{Name: "w", DType: "BF16", Shape: []uint64{2, 3}, Size: 12}
	reshaped := delta.Tensor{Name: "w", DType: "BF16", Shape: []uint64{3, 2}, Size: 12}
	retyped := delta.Tensor{Name: "w", DType: "F16", Shape: []uint64{2, 3}, Size: 12}
	x, y := delta.Tensor{Name: "x", DType: "I8", Size: 1}, delta.Tensor{Name: "y", DType: "I8", Size: 1}
	long := delta.Tensor{Name: strings.Repeat("é", 500), DType: "I8", Size: 1}
	one := func(list ...delta.Tensor) delta.StateTensors { return delta.StateTensors{Tensors: list} }
	policy := func(list ...delta.Tensor) delta.StateTensors {
		return delta.StateTensors{Name: "policy", Tensors: list}
	}
	draft := delta.StateTensors{Name: "draft", Tensors: []delta.Tensor{x}}
	grouped := func(string, delta.Tensor) []delta.Cut { return []delta.Cut{{Group: "g"}} }
	for _, c := range []struct {
		before, now *delta.Schema
		want        string
	}{
		{schema(nil, one(w)), schema(nil, one(w)), ""},
		{schema(nil, one(w, x, y)), schema(nil, one(w)), "2 gone (the first: x)"},
		{schema(nil, one(w)), schema(nil, one(w, y, x)), "2 new (the first: x)"},
		{schema(nil, one(w)), schema(nil, one(reshaped)), "1 of another dtype or shape (the first: w is BF16[3 2], was BF16[2 3])"},
		{schema(nil, one(w)), schema(nil, one(retyped)), "1 of another dtype or shape (the first: w is F16[2 3], was BF16[2 3])"},
		{schema(nil, one(x)), schema(nil, one(y)), "1 gone (the first: x); 1 new (the first: y)"},
		{schema(nil, policy(w), draft), schema(nil, policy(w)), "states are policy, were draft, policy"},
		{schema(nil, policy(w), draft), schema(nil, policy(x), draft), "1 gone (the first: w of policy); 1 new (the first: x of policy)"},
		{schema(nil, one(w)), schema(nil, policy(w)), "states are policy, were one without a name"},
		{schema(nil, one(w)), schema(grouped, one(w)), "they are cut into other pieces (group_by)"},
		{schema(nil, one(w, long)), schema(nil, one(w)), "1 gone (the first: " + strings.Repeat("é", 50) + "…)"},
	} {
		if got := compareSchemas(c.before, c.now); string(got) != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// A publish of other tensors, as of a mistyped path, says so itself, what it costs, and what differs; none other does.
func TestPublishWarnsOfOtherTensors(t *testing.T) {
	steps := series(t, 2)
	other := filepath.Join(t.TempDir(), "other.safetensors")
	writeCheckpoint(t, other, []safetensors.Tensor{{Name: "v", DType: "I8", Shape: []uint64{4}, Size: 4}}, []byte{1, 2, 3, 4})
	cfg, _ := newConfig(t, mesh.RoleTrainer, steps[0])
	trainer := startNode(t, cfg)
	for i, c := range []struct{ path, before string }{
		{other, "version 0"}, {other, ""}, {steps[1], "version 2"}, {steps[0], ""}, {other, "version 4"},
	} {
		r := trainer.mustPublish(t, c.path)
		if c.before == "" {
			if r.Warning != "" {
				t.Errorf("publish %d warns of %q", i, r.Warning)
			}
			continue
		}
		for _, want := range []string{"other tensors than " + c.before + ": a full copy of ", " is sent to everybody: ", "gone (the first: ", "new (the first: "} {
			if !strings.Contains(r.Warning, want) {
				t.Errorf("publish %d warns of %q, want %q", i, r.Warning, want)
			}
		}
	}
}
