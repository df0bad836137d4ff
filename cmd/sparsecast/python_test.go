package main

import (
	"flag"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sparsecast/sparsecast/delta/needs"
)

var runs = flag.String("runs", "", "directory with recorded runs, each a directory of step_*.safetensors, for the decoder in Python to agree on")

// TestPythonAgreesOnRuns has the decoder in Python apply what diff writes between all consecutive checkpoints of recorded
// runs, and to the first from nothing. Package delta tests it on what is small; this takes minutes.
func TestPythonAgreesOnRuns(t *testing.T) {
	if *runs == "" {
		t.Skip("-runs DIR names no recorded runs")
	}
	python, err := exec.LookPath("python3")
	needs.Met(t, "python3", err)
	all, err := filepath.Glob(filepath.Join(*runs, "*", "step_*.safetensors"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no checkpoints in %s: %v", *runs, err)
	}
	for i, next := range all {
		name, _ := filepath.Rel(*runs, next)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			edge, out := filepath.Join(dir, "edge.delta"), filepath.Join(dir, "out.safetensors")
			diff, decode := []string{"diff", "-", next, "-o", edge}, []string{"../../scripts/python/decode_delta.py", edge, out}
			if i > 0 && filepath.Dir(all[i-1]) == filepath.Dir(next) {
				diff = []string{"diff", all[i-1], next, "-o", edge}
				decode = append(decode, all[i-1])
			}
			mustDo(t, "sparsecast", diff...)
			mustDo(t, python, decode...)
			if got, want := mustDo(t, "sparsecast", "verify", out), mustDo(t, "sparsecast", "verify", next); got != want {
				t.Errorf("comes out as %s, want %s", got, want)
			}
		})
	}
}

func mustDo(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	return string(out)
}
