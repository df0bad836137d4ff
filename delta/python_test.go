package delta

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sparsecast/sparsecast/delta/needs"
)

// The decoder in scripts/python was written from doc.go and shares nothing with ours. Where both come to the same weights
// the format is what doc.go says.
func TestPythonAgrees(t *testing.T) {
	python, err := exec.LookPath("python3")
	needs.Met(t, "python3", err)
	small, changed := smallPair(t)
	cutOld, cutNew := goldenStates(t)
	for name, states := range map[string][2]*Memory{
		"delta":        {small, changed},
		"anchor":       {nil, changed},
		"nothing":      {small, clone(small)},
		"cut":          {cutOld, cutNew},
		"cut back":     {cutNew, cutOld},
		"cut anchor":   {nil, cutNew},
		"other widths": wideStates(t),
	} {
		t.Run(name, func(t *testing.T) {
			old, new := states[0], states[1]
			dir := t.TempDir()
			edge, out := filepath.Join(dir, "edge.delta"), filepath.Join(dir, "out.safetensors")
			args := []string{"../scripts/python/decode_delta.py", edge, out}
			if old != nil {
				args = append(args, filepath.Join(dir, "old.safetensors"))
				writeStates(t, args[3], old)
			}
			e := writeEdge(t, spoolFile(t), old, new)
			var file bytes.Buffer
			if err := WriteContainer(&file, e.Manifest, new.schema, bytes.NewReader(bytes.Join(e.chunks, nil))); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(edge, file.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			if said, err := exec.CommandContext(t.Context(), python, args...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			got, err := OpenCheckpoint(out)
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			names := make(map[string]int)
			for i, tensor := range got.Schema().Tensors() {
				names[tensor.Name] = i
			}
			for i, want := range new.tensors {
				b := make([]byte, len(want))
				if err := got.ReadAt(names[new.schema.Tensors()[i].Name], b, 0); err != nil || !bytes.Equal(b, want) {
					t.Errorf("tensor %d comes out differently (%v)", i, err)
				}
			}
		})
	}
}

// writeStates writes the tensors of all states into one file; their names must differ.
func writeStates(t *testing.T, path string, m *Memory) {
	t.Helper()
	schema, err := NewSchema(m.schema.Tensors())
	if err != nil {
		t.Fatal(err)
	}
	d, err := CreateDraft(path, schema)
	if err != nil {
		t.Fatal(err)
	}
	for i, tensor := range schema.Tensors() {
		for j, mine := range m.schema.Tensors() {
			if mine.Name == tensor.Name {
				if err := d.WriteAt(i, m.tensors[j], 0); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := d.Commit(); err != nil {
		t.Fatal(err)
	}
}

// wideStates returns two states of every width that change by small and by any steps, in some words and in most.
func wideStates(t *testing.T) [2]*Memory {
	var tensors []Tensor
	for dtype, width := range map[string]int{"F64": 8, "F32": 4, "F16": 2, "I32": 4, "U8": 1, "F8_E5M2": 1, "I64": 8} {
		tensors = append(tensors, tensorOf("small "+dtype, dtype, width, 2000), tensorOf("any "+dtype, dtype, width, 2000), tensorOf("all "+dtype, dtype, width, 100))
	}
	schema, err := NewSchema(tensors)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	old := NewMemory(schema)
	for _, b := range old.tensors {
		for i := range b {
			b[i] = byte(r.Uint32())
		}
	}
	new := clone(old)
	for i, tensor := range schema.Tensors() {
		width := codingOf(tensor.DType).width
		switch tensor.Name[:3] {
		case "sma":
			for at := 0; at < len(new.tensors[i]); at += 7 * width {
				new.tensors[i][at]++
			}
		case "any":
			mutate(r, new.tensors[i], width, 0.05)
		case "all":
			mutate(r, new.tensors[i], width, 1)
		}
	}
	return [2]*Memory{old, new}
}
