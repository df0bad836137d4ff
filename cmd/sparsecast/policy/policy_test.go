package policy

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSizeIsWithinTwoPercent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		magnitude := rapid.Float64Range(math.Log(MinBytes), math.Log(MaxBytes)).Draw(t, "log size")
		checkSize(t, int64(min(max(MinBytes, math.Exp(magnitude)), MaxBytes)))
	})
	for _, bytes := range []int64{MinBytes, 1 << 20, 64 << 20, 1e9, 16e9, 140e9, 1e12, MaxBytes} {
		checkSize(t, bytes)
	}
}

func checkSize(t interface{ Fatalf(string, ...any) }, bytes int64) {
	p, err := New(Spec{Bytes: bytes})
	if err != nil {
		t.Fatalf("%d bytes: %v", bytes, err)
	}
	if off := float64(p.Bytes()-bytes) / float64(bytes); math.Abs(off) > 0.02 {
		t.Fatalf("%d bytes asked for, %d made: %.2f %% off", bytes, p.Bytes(), 100*off)
	}
}

func TestShapesAreBelievable(t *testing.T) {
	for _, bytes := range []int64{MinBytes, 8 << 20, 1e9, 16e9, 140e9, 1e12} {
		d := choose(bytes / 2)
		t.Logf("%14d bytes: %+v", bytes, d)
		if d.layers < 2 || d.layers > 200 || d.vocab < 256 || d.vocab > 300_000 {
			t.Errorf("%d bytes: %+v", bytes, d)
		}
		if share := float64(2*d.vocab*d.hidden) / float64(bytes/2); share > 0.45 {
			t.Errorf("%d bytes: %.0f %% of the elements belong to the vocabulary", bytes, 100*share)
		}
	}
}

func TestTensorsAgree(t *testing.T) {
	p, err := New(Spec{Bytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	seen := map[string]bool{}
	for _, tensor := range p.Tensors() {
		size := int64(2)
		for _, d := range tensor.Shape {
			size *= int64(d)
		}
		if size != tensor.Size || tensor.DType != "BF16" || seen[tensor.Name] {
			t.Errorf("bad or doubled tensor %+v", tensor)
		}
		seen[tensor.Name] = true
		total += size
	}
	if total != p.Bytes() {
		t.Errorf("tensors hold %d bytes, Bytes says %d", total, p.Bytes())
	}
	for _, name := range []string{
		"model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight", "model.layers.3.mlp.down_proj.weight",
		"model.layers.0.post_attention_layernorm.weight", "model.norm.weight", "lm_head.weight",
	} {
		if !seen[name] {
			t.Errorf("no tensor %s", name)
		}
	}
}

func TestNewSaysWhatIsAllowed(t *testing.T) {
	ok := Spec{Bytes: MinBytes, Updates: 1, LR: 1e-6}
	for _, c := range []struct {
		change func(*Spec)
		want   string
	}{
		{func(s *Spec) { s.Bytes = MinBytes - 1 }, "from 1000000 (1 MB)"},
		{func(s *Spec) { s.Bytes = MaxBytes + 1 }, "(1 TiB)"},
		{func(s *Spec) { s.Updates = -1 }, "from 0 to 100000"},
		{func(s *Spec) { s.Updates = MaxUpdates + 1 }, "from 0 to 100000"},
		{func(s *Spec) { s.LR = -1e-9 }, "from 0 to 0.01"},
		{func(s *Spec) { s.LR = math.NaN() }, "from 0 to 0.01"},
		{func(s *Spec) { s.LR = math.Inf(1) }, "from 0 to 0.01"},
	} {
		s := ok
		c.change(&s)
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one with %q", s, err, c.want)
		}
	}
}
