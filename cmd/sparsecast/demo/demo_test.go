package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOptionsThatCannotWork(t *testing.T) {
	empty, one, small := t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(one, "step_000000.safetensors"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{Rollouts: 0}, "0 rollouts: want 1 to 64"},
		{Options{Rollouts: 65}, "65 rollouts: want 1 to 64"},
		{Options{Rollouts: 1, Steps: empty}, "0 files step_*.safetensors, want a base and at least one update"},
		{Options{Rollouts: 1, Steps: one}, "1 files step_*.safetensors"},
		{Options{Rollouts: 1, Size: 5, Updates: 1, LR: 1e-6}, "size of 5 bytes"},
		{Options{Rollouts: 64, Size: 1 << 40, Updates: 100_000, LR: 1e-6}, "use --size, --updates or --rollouts to make it smaller, or --dir"},
	} {
		c.options.Dir = filepath.Join(small, "work")
		if err := Run(t.Context(), c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.options, err, c.want)
		}
	}
}

// TestWorkDir keeps a directory that was named, and removes one that was not.
func TestWorkDir(t *testing.T) {
	named := filepath.Join(t.TempDir(), "a", "b")
	for _, want := range []string{named, ""} {
		dir, done, err := workDir(want)
		if err != nil || !filepath.IsAbs(dir) {
			t.Fatalf("%q: %q, %v", want, dir, err)
		}
		if err := done(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dir); (err == nil) != (want != "") {
			t.Errorf("%q: afterwards %s: %v", want, dir, err)
		}
	}
}
