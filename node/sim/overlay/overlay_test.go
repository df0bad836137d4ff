package overlay

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReplayFits fails on a Go version whose runtime reads otherwise, and when a patch makes no Go of it.
func TestReplayFits(t *testing.T) {
	dir := t.TempDir()
	list, err := Write(dir, ".", Replay())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	var files struct{ Replace map[string]string }
	if err := json.Unmarshal(raw, &files); err != nil || len(files.Replace) < 5 {
		t.Fatalf("%d files: %v", len(files.Replace), err)
	}
	for file, copied := range files.Replace {
		if _, err := parser.ParseFile(token.NewFileSet(), copied, nil, 0); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestPatchesApplyOnce(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		patches          []Patch
	}{
		{"one", "a b c", "a x c", []Patch{{"f", "b", "x"}}},
		{"one after another", "a b c", "a y c", []Patch{{"f", "b", "x"}, {"f", "x c", "y c"}}},
		{"not there", "a b c", "", []Patch{{"f", "d", "x"}}},
		{"twice", "a b b", "", []Patch{{"f", "b", "x"}}},
		{"nothing", "a b c", "", []Patch{{"f", "", "x"}}},
		{"no file", "a b c", "", []Patch{{"g", "b", "x"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			file := filepath.Join(root, "f")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			texts, _, err := apply(root, c.patches)
			if got := texts[file]; got != c.want || (err != nil) != (c.want == "") {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	name := filepath.Join(t.TempDir(), "bug.json")
	if err := os.WriteFile(name, []byte(`[{"file": "mesh/gossip.go", "old": "a", "new": "b"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	patches, err := Load(name)
	if want := (Patch{"mesh/gossip.go", "a", "b"}); err != nil || len(patches) != 1 || patches[0] != want {
		t.Errorf("%v, %v", patches, err)
	}
	if err := os.WriteFile(name, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(name); err == nil || !strings.Contains(err.Error(), "want a list") {
		t.Errorf("an object: %v", err)
	}
}
