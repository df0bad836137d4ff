package node

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// straight names, by package, what reaches this machine's disk past the Machine that a node is given. An empty list
// means the whole package.
var straight = map[string][]string{
	"os":          {},
	"syscall":     {},
	"unix":        {},
	"ioutil":      {},
	"files":       {"OS"},
	"delta":       {"OpenCheckpoint", "CreateDraft"},
	"safetensors": {"OS", "Open", "Create"},
	"filepath":    {"EvalSymlinks", "Glob", "Walk", "WalkDir"},
}

// excused names the few places that may, and what they use.
var excused = map[string][]string{
	"machine.go":      {"files.OS"},                                                         // where this machine is chosen
	"config_load.go":  {"files.OS"},                                                         // a configuration comes before its node
	"config_peers.go": {"files.OS"},                                                         // so do the lists, for commands
	"config_key.go":   {"files.OS", "os.MkdirAll", "os.CreateTemp", "os.Remove", "os.Link"}, // and keygen
	"log.go":          {"os.File"},                                                          // is it a terminal?
}

// TestNobodyPassesTheMachine holds all files of a node to the file system that it was given, without which a simulated
// crash would prove nothing.
func TestNobodyPassesTheMachine(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil || len(names) == 0 {
		t.Fatalf("no sources here: %v", err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, use := range straightUses(t, name, nil) {
			if !slices.Contains(excused[name], use) {
				t.Errorf("%s uses %s: go through the files.FS of the node's Machine", name, use)
			}
		}
	}
}

func TestNobodyPassesTheMachineBites(t *testing.T) {
	src := `package x
import "os"
func f() { os.ReadFile("x"); delta.OpenCheckpoint("x"); delta.OpenCheckpointOn(d, "x"); files.Open(d, "x"); unix.Statfs("", nil) }`
	if got := straightUses(t, "x.go", src); !slices.Equal(got, []string{"os.ReadFile", "delta.OpenCheckpoint", "unix.Statfs"}) {
		t.Errorf("found %v", got)
	}
}

// straightUses returns the names that a source uses straight.
func straightUses(t *testing.T, name string, src any) (uses []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := s.X.(*ast.Ident)
		if !ok {
			return true
		}
		names, listed := straight[pkg.Name]
		constant := strings.HasPrefix(s.Sel.Name, "Err") || strings.HasPrefix(s.Sel.Name, "O_")
		if listed && !constant && (len(names) == 0 || slices.Contains(names, s.Sel.Name)) {
			uses = append(uses, pkg.Name+"."+s.Sel.Name)
		}
		return true
	})
	return uses
}
