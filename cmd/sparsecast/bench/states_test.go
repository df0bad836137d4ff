package bench

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparsecast/sparsecast/cmd/sparsecast/policy"
	"github.com/sparsecast/sparsecast/delta"
)

// save writes a checkpoint of one tensor.
func save(t *testing.T, path string, words ...uint16) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	b := bf16s(words...)
	schema, err := delta.NewSchema([]delta.Tensor{{Name: "w", DType: "BF16", Shape: []uint64{uint64(len(words))}, Size: int64(len(b))}})
	if err != nil {
		t.Fatal(err)
	}
	d, err := delta.CreateDraft(path, schema)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Abort() // nothing to do after a commit
	if err := d.WriteAt(0, b, 0); err != nil {
		t.Fatal(err)
	}
	if err := d.Commit(); err != nil {
		t.Fatal(err)
	}
}

// TestFindSteps goes by numbers, whatever files and directories are called.
func TestFindSteps(t *testing.T) {
	dir := t.TempDir()
	save(t, filepath.Join(dir, "step_000010.safetensors"), 10)
	save(t, filepath.Join(dir, "global_step_9", "model.safetensors"), 9)
	save(t, filepath.Join(dir, "checkpoint-100", "model.safetensors"), 100)
	save(t, filepath.Join(dir, "step_x.safetensors"), 0)
	save(t, filepath.Join(dir, "notes_step_5.txt"), 0)
	s, err := findSteps(dir, 0, math.MaxInt)
	if err != nil || !slices.Equal(s.names(), []string{"9", "10", "100"}) {
		t.Fatalf("found %v, %v", s.names(), err)
	}
	for i, want := range []uint16{9, 10, 100} {
		m, err := s.load(t.Context(), i)
		if err != nil || string(m.Tensor(0)) != string(bf16s(want)) {
			t.Errorf("state %d: %v, %v", i, m, err)
		}
		if n, err := s.fileBytes(i); err != nil || n < 10 {
			t.Errorf("state %d: files of %d bytes, %v", i, n, err)
		}
	}
	if s, err := findSteps(dir, 10, 100); err != nil || !slices.Equal(s.names(), []string{"10", "100"}) {
		t.Errorf("from 10 to 100: %v, %v", s, err)
	}
}

func TestStepsThatCannotBeMeasured(t *testing.T) {
	dir := t.TempDir()
	refused := func(first, last int, want string) {
		t.Helper()
		if _, err := findSteps(dir, first, last); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	refused(0, 9, "holds no checkpoints of steps: they are called step_000042.safetensors, or are directories")
	save(t, filepath.Join(dir, "step_1.safetensors"), 1, 2)
	refused(0, 9, "holds the checkpoints of 1 steps, 1 of them asked for: two at least are needed")
	save(t, filepath.Join(dir, "step_2.safetensors"), 1, 3)
	refused(2, 9, "holds the checkpoints of 2 steps, 1 of them asked for: two at least are needed")
	save(t, filepath.Join(dir, "step_03.safetensors"), 1, 3, 4)
	refused(0, 9, "step_2.safetensors and "+filepath.Join(dir, "step_03.safetensors")+" differ in tensor names, dtypes or shapes")
	save(t, filepath.Join(dir, "step_3", "model.safetensors"), 1, 3)
	refused(0, 9, "are of the same step")
	if err := os.WriteFile(filepath.Join(dir, "step_4.safetensors"), []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(4, 4, "two at least")
	if err := os.WriteFile(filepath.Join(dir, "step_5.safetensors"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(4, 5, "step_4.safetensors")
}

// TestOfSteps measures a small run with all that there is.
func TestOfSteps(t *testing.T) {
	dir := t.TempDir()
	words := make([]uint16, 4000)
	for i := range words {
		words[i] = uint16(0x3c00 + i*i%1000)
	}
	for step := range 4 {
		save(t, filepath.Join(dir, "step_"+string(rune('0'+step))+".safetensors"), words...)
		for i := step; i < len(words); i += 61 {
			words[i] += uint16(1 - 2*(i%2))
		}
	}
	var out strings.Builder
	o := Options{Steps: dir, Last: math.MaxInt, Peers: true, Squash: true, Rounds: 1, SpeedBytes: 10_000, JSON: "-", Quiet: true}
	if err := Codec(t.Context(), &out, o); err != nil {
		t.Fatal(err)
	}
	var r Report
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Pairs) != 3 || r.Sum.Changed != 3*66 || r.Sum.Elements != 3*4000 || r.Sum.Bound <= 0 || r.Sum.OfBound <= 0 {
		t.Errorf("%d pairs, sum %+v", len(r.Pairs), r.Sum)
	}
	// A root, a digest of the only block and the length of the only frame.
	if e := r.Pairs[0].Edge; e.Outboard != 32+16+4 || e.Manifest == 0 || e.wire() != e.Stream+e.Manifest {
		t.Errorf("code of a pair: %+v", e)
	}
	if r.Squashed == nil || r.Squashed.Singles != r.Sum.Stream || r.Squashed.Changed == 0 || r.Squashed.Share <= 0 {
		t.Errorf("squashed: %+v", r.Squashed)
	}
	if r.Anchor.State != "3" || r.Anchor.Changed != 4000 || r.Anchor.Files <= r.Anchor.Dense || r.Anchor.Share <= 0 {
		t.Errorf("full copy: %+v", r.Anchor)
	}
	if r.SpeedOf == nil || r.SpeedOf.Copies != 2 || len(r.Speeds) == 0 {
		t.Errorf("speed of %+v: %+v", r.SpeedOf, r.Speeds)
	}
	_, program := packersHere()
	if want := len(peers); program && len(r.Pairs[2].Peers) != want+1 || !program && (len(r.Pairs[2].Peers) != want || len(r.Notes) != 1) {
		t.Errorf("peers %+v, notes %q", r.Pairs[2].Peers, r.Notes)
	}
}

// TestWithoutProgram is a machine without zstd.
func TestWithoutProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var out strings.Builder
	o := Options{Size: policy.MinBytes, LR: 1e-5, Peers: true, Quiet: true}
	if err := Codec(t.Context(), &out, o); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); !strings.Contains(s, "note: the zstd program is not installed") || strings.Contains(s, "between files") {
		t.Errorf("printed %s", s)
	}
}

// TestEmptyStates have nothing to tell, which is no reason to fail.
func TestEmptyStates(t *testing.T) {
	dir := t.TempDir()
	save(t, filepath.Join(dir, "step_1.safetensors"))
	save(t, filepath.Join(dir, "step_2.safetensors"))
	var out strings.Builder
	o := Options{Steps: dir, Last: math.MaxInt, Peers: true, Squash: true, Rounds: 1, SpeedBytes: 1000, JSON: "-", Quiet: true}
	if err := Codec(t.Context(), &out, o); err != nil {
		t.Fatal(err)
	}
	var r Report
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil || r.Sum.Elements != 0 || r.Sum.Stream == 0 {
		t.Errorf("%+v, %v", r.Sum, err)
	}
}

// TestMadeUp is as dense as the help says, and the same every time.
func TestMadeUp(t *testing.T) {
	spec := policy.Spec{Bytes: 8_000_000, Updates: 1, LR: 1.6e-6, Seed: 1}
	var told int64
	m, err := makeUp(t.Context(), spec, func(done, of int64) { told = done - of })
	if err != nil {
		t.Fatal(err)
	}
	again, err := makeUp(t.Context(), spec, func(int64, int64) {})
	if err != nil || !equal(m[0], again[0]) || !equal(m[1], again[1]) {
		t.Errorf("another policy the second time (%v)", err)
	}
	if told != 0 {
		t.Errorf("progress ends %d bytes beside the end", told)
	}
	e, err := measureEdge(t.Context(), pair{m[0], m[1]})
	if err != nil {
		t.Fatal(err)
	}
	if density := float64(e.Changed) / float64(e.Elements); density < 0.015 || density > 0.02 {
		t.Errorf("density %.4f", density)
	}
	for i, tensor := range m[0].Schema().Tensors() { // norms lie near one, all others near zero
		first := layoutOf("BF16").word(m[0].Tensor(i), 0) &^ 0x8000
		if norm := strings.Contains(tensor.Name, "norm"); norm != (first > 0x3f00) {
			t.Errorf("%s begins with %x", tensor.Name, first)
		}
	}
	for _, bad := range []policy.Spec{{Bytes: 5, Updates: 1, LR: 1e-6}, {Bytes: 8e6, Updates: 1, LR: -1}} {
		if _, err := makeUp(t.Context(), bad, nil); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}

func TestRoundsAreBounded(t *testing.T) {
	for _, rounds := range []int{-1, maxRounds + 1} {
		if err := Codec(t.Context(), nil, Options{Rounds: rounds}); err == nil || !strings.Contains(err.Error(), "rounds: give a number") {
			t.Errorf("%d rounds: %v", rounds, err)
		}
	}
}
