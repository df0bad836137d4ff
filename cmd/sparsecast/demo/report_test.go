package demo

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestOneDifferenceFailsTheDemo is why its exit code can be trusted.
func TestOneDifferenceFailsTheDemo(t *testing.T) {
	good := versionReport{Number: 1, Changed: 1, Elements: 2, Dense: 4, Coded: 1, Identical: true}
	bad := good
	bad.Identical = false
	for _, c := range []struct {
		versions []versionReport
		want     bool
	}{
		{[]versionReport{good, good}, true},
		{[]versionReport{bad, good}, false},
		{[]versionReport{good, bad}, false},
	} {
		r := &report{Rollouts: 1, Identical: true}
		for _, v := range c.versions {
			r.add(v)
		}
		file := filepath.Join(t.TempDir(), "out.json")
		if err := r.finish(file); (err == nil) != c.want {
			t.Errorf("versions %v: error %v", c.versions, err)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("a failed demo tells scripts nothing: %v", err)
		}
		var back report
		if err := json.Unmarshal(b, &back); err != nil || back.Identical != c.want || len(back.Versions) != 2 {
			t.Errorf("wrote %s (%v)", b, err)
		}
	}
}
