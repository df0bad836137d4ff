package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const (
	modulePath = "github.com/sparsecast/sparsecast"
	// maxLines bounds a source file; a longer one holds more than one idea.
	maxLines = 400
)

// topLevel lists what may lie in the root beside dotfiles and the ignored bin.
var topLevel = []string{
	"node", "delta", "gpu", "mesh", "cmd", "scripts", "go.mod", "go.sum",
	"Makefile", "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "bin",
}

// layers says what each part of the tree may import of ours; the longest matching path counts.
// A trailing /... allows everything below.
var layers = map[string][]string{
	"cmd":               {"cmd/...", "node/...", "mesh/...", "gpu/...", "delta/..."},
	"scripts":           {"cmd/...", "node/...", "mesh/...", "gpu/...", "delta/..."},
	"node":              {"node/...", "mesh/...", "gpu/...", "delta/..."},
	"node/files":        {"delta/safetensors"}, // whose Disk it extends
	"node/files/faults": {"node/files", "delta/safetensors"},
	"mesh":              {"mesh/...", "delta"},
	"gpu":               {"gpu/...", "delta/..."},
	"delta":             {"delta/..."},
	"delta/safetensors": {"delta/needs"}, // in tests
	"delta/needs":       {},
}

// vague lists package names that say nothing.
var vague = []string{"util", "utils", "common", "helper", "helpers", "misc"}

// TestHouse holds the tree to its layout, its import direction and its habits of documentation and size.
func TestHouse(t *testing.T) {
	root := os.DirFS("../..")
	if _, err := fs.Stat(root, "go.mod"); err != nil {
		t.Fatalf("the root of the repository is not two levels up: %v", err)
	}
	for _, fault := range treeFaults(t, root) {
		t.Error(fault)
	}
	for _, fault := range topFaults(topNames(t, "../..")) {
		t.Error(fault)
	}
}

// topNames lists what git tracks in the root, or everything where git cannot say.
func topNames(t *testing.T, root string) []string {
	var names []string
	if out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z").Output(); err == nil {
		for file := range strings.SplitSeq(string(out), "\x00") {
			name, _, _ := strings.Cut(file, "/")
			names = append(names, name)
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func topFaults(names []string) (faults []string) {
	for _, name := range names {
		if name != "" && !strings.HasPrefix(name, ".") && !slices.Contains(topLevel, name) {
			faults = append(faults, fmt.Sprintf("%s: not allowed at the top level", name))
		}
	}
	return faults
}

// treeFaults reports everything under root that breaks a rule.
func treeFaults(t *testing.T, root fs.FS) (faults []string) {
	packages := map[string]*pkg{}
	err := fs.WalkDir(root, ".", func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && file != "." && skipped(root, file):
			return fs.SkipDir
		case !e.IsDir() && strings.HasSuffix(file, ".go"):
			p := packages[path.Dir(file)]
			if p == nil {
				p = &pkg{dir: path.Dir(file)}
				packages[p.dir] = p
			}
			return p.read(root, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		faults = append(faults, p.faults...)
		faults = append(faults, p.docFaults()...)
	}
	slices.Sort(faults)
	return faults
}

// skipped tells whether the go command leaves dir out too: hidden folders, test data, other modules.
func skipped(root fs.FS, dir string) bool {
	name := path.Base(dir)
	_, err := fs.Stat(root, path.Join(dir, "go.mod"))
	return err == nil || name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

// pkg is what the checks know of the files of one folder.
type pkg struct {
	dir, name string
	documents []string // files with a package comment
	faults    []string
}

func (p *pkg) fault(file, format string, args ...any) {
	p.faults = append(p.faults, file+": "+fmt.Sprintf(format, args...))
}

func (p *pkg) read(root fs.FS, file string) error {
	src, err := fs.ReadFile(root, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // an editor's scratch file that went while we looked
	} else if err != nil {
		return err
	}
	f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}
	for _, spec := range f.Imports {
		p.checkImport(file, spec)
	}
	if strings.HasSuffix(file, "_test.go") {
		return nil
	}
	p.name = f.Name.Name
	if slices.Contains(vague, p.name) {
		p.fault(file, "package %s: name it after what it knows", p.name)
	}
	if strings.TrimSpace(f.Doc.Text()) != "" {
		p.documents = append(p.documents, path.Base(file))
	}
	if n := bytes.Count(src, []byte("\n")); n > maxLines && !ast.IsGenerated(f) {
		p.fault(file, "%d lines, more than %d", n, maxLines)
	}
	return nil
}

func (p *pkg) checkImport(file string, spec *ast.ImportSpec) {
	target, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		p.fault(file, "import %s: %v", spec.Path.Value, err)
		return
	}
	target, ours := strings.CutPrefix(target, modulePath+"/")
	external := p.dir == target && strings.HasSuffix(file, "_test.go")
	if ours && !external && !allowed(p.dir, target) {
		p.fault(file, "imports %s, against the direction cmd -> node -> mesh, gpu -> delta", target)
	}
}

// allowed tells whether the package in dir may import target, both relative to the module.
func allowed(dir, target string) bool {
	for at := dir; at != "."; at = path.Dir(at) {
		if targets, ok := layers[at]; ok {
			return slices.ContainsFunc(targets, func(t string) bool {
				below, deep := strings.CutSuffix(t, "/...")
				return target == below || deep && strings.HasPrefix(target, below+"/")
			})
		}
	}
	return false
}

// docFaults wants one package comment: in doc.go, or for a command beside its main function.
func (p *pkg) docFaults() []string {
	switch {
	case p.name == "": // only tests
		return nil
	case len(p.documents) == 0:
		return []string{p.dir + ": no package comment; write one in doc.go"}
	case len(p.documents) > 1:
		return []string{fmt.Sprintf("%s: package comments in %v; keep the one in doc.go", p.dir, p.documents)}
	case p.documents[0] != "doc.go" && p.name != "main":
		return []string{fmt.Sprintf("%s: package comment in %s; move it to doc.go", p.dir, p.documents[0])}
	}
	return nil
}

// TestHouseRulesBite shows each check a tree that breaks it, and one that breaks nothing.
func TestHouseRulesBite(t *testing.T) {
	ours := func(p string) string { return fmt.Sprintf("package x\n\nimport _ %q\n", modulePath+"/"+p) }
	long := "package mesh\n" + strings.Repeat("\n", maxLines)
	for _, c := range []struct{ file, src, want string }{
		{"mesh/picker.go", ours("delta"), ""},
		{"node/node.go", ours("mesh"), ""},
		{"node/api/api.go", ours("delta/safetensors"), ""},
		{"cmd/sparsecast/demo.go", ours("node"), ""},
		{"gpu/diff.go", ours("delta"), ""},
		{"delta/x_test.go", ours("delta"), ""},
		{"node/files/x_test.go", ours("node/files"), ""},
		{"mesh/testdata/x.go", ours("node"), ""},
		{"mesh/generated.go", "// Code generated by hand. DO NOT EDIT.\n\n" + long, ""},
		{"mesh/picker.go", ours("node"), "mesh/picker.go: imports node"},
		{"mesh/picker.go", ours("gpu"), "mesh/picker.go: imports gpu"},
		{"mesh/picker.go", ours("delta/safetensors"), "imports delta/safetensors"},
		{"mesh/picker.go", ours("deltaic"), "imports deltaic"},
		{"gpu/diff.go", ours("mesh"), "gpu/diff.go: imports mesh"},
		{"gpu/diff.go", ours("node/files"), "imports node/files"},
		{"delta/encode.go", ours("mesh"), "delta/encode.go: imports mesh"},
		{"delta/encode_test.go", ours("node/files"), "delta/encode_test.go: imports node/files"},
		{"delta/safetensors/read.go", ours("delta"), "delta/safetensors/read.go: imports delta"},
		{"node/files/dir.go", ours("delta"), "node/files/dir.go: imports delta"},
		{"node/files/dir.go", ours("mesh"), "node/files/dir.go: imports mesh"},
		{"node/files/dir.go", ours("node/files/faults"), "node/files/dir.go: imports node/files/faults"},
		{"node/node.go", ours("cmd/sparsecast/policy"), "imports cmd/sparsecast/policy"},
		{"elsewhere/x.go", ours("delta"), "elsewhere/x.go: imports delta"},
		{"mesh/picker.go", long, "mesh/picker.go: 401 lines"},
		{"mesh/picker.go", "// Package mesh is here too.\npackage mesh\n", "mesh: package comments in [doc.go picker.go]"},
		{"mesh/wire/wire.go", "package wire\n", "mesh/wire: no package comment"},
		{"mesh/wire/wire.go", "// Package wire is.\npackage wire\n", "package comment in wire.go"},
		{"cmd/other/main.go", "// Other does.\npackage main\n", ""},
		{"cmd/other/main.go", "package main\n", "cmd/other: no package comment"},
		{"node/util/doc.go", "// Package util is vague.\npackage util\n", "package util: name it"},
	} {
		tree := conforming()
		tree[c.file] = &fstest.MapFile{Data: []byte(c.src)}
		got := treeFaults(t, tree)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
			t.Errorf("%s: faults %q, want one with %q", c.file, got, c.want)
		}
	}
	if got := topFaults([]string{".ci", "Makefile", "delta", "docs"}); len(got) != 1 || !strings.Contains(got[0], "docs") {
		t.Errorf("top level: faults %q, want one about docs", got)
	}
}

// conforming returns a small tree that keeps every rule; the samples above overwrite or add one file.
func conforming() fstest.MapFS {
	tree := fstest.MapFS{"go.mod": {Data: []byte("module " + modulePath + "\n")}}
	for dir := range layers {
		doc := fmt.Sprintf("// Package x is in %s.\npackage x\n", dir)
		tree[dir+"/doc.go"] = &fstest.MapFile{Data: []byte(doc)}
	}
	for _, dir := range []string{"node/api", "cmd/sparsecast", "elsewhere"} {
		tree[dir+"/doc.go"] = &fstest.MapFile{Data: []byte("// Package x is.\npackage x\n")}
	}
	return tree
}
