package node

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
	"github.com/sparsecast/sparsecast/node/files"
)

// ExampleConfig is a commented configuration of a rollout node.
//
//go:embed example.yaml
var ExampleConfig string

// maxConfigFile bounds the configuration, in bytes.
const maxConfigFile = 64 << 10

// LoadConfig reads the configuration at path over the defaults, resolves it and validates it.
// A mistake is a *ConfigError.
func LoadConfig(path string) (*Config, error) {
	b, err := readSmall(files.OS{}, path, maxConfigFile)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return parseConfig(b, path, dir)
}

func parseConfig(b []byte, name, dir string) (*Config, error) {
	if err := checkLines(b, name); err != nil {
		return nil, err
	}
	tokens := lexer.Tokenize(string(b))
	if err := checkDepth(tokens, name); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, explainYAML(err, nil, name)
	}
	body, err := onlyDocument(file, name)
	if err != nil {
		return nil, err
	}
	c := DefaultConfig()
	if body != nil { // decoding nothing would clear the defaults
		if err := yaml.UnmarshalWithOptions(b, c, yaml.Strict()); err != nil {
			return nil, locate(explainYAML(err, file, name), file, name)
		}
	}
	c.Resolve(dir)
	if err := c.Validate(); err != nil {
		return nil, locate(err, file, name)
	}
	return c, nil
}

// locate adds the file, and the line of the field when the file has one, to a mistake.
func locate(err error, file *ast.File, name string) error {
	var e *ConfigError
	if !errors.As(err, &e) || e.Line > 0 {
		return err
	}
	e.File = name
	path, perr := yaml.PathString("$." + e.Field)
	if perr != nil {
		return err
	}
	if node, ferr := path.FilterFile(file); ferr == nil && node != nil {
		e.Line = node.GetToken().Position.Line
	}
	return err
}

// explainYAML says in the words of the configuration what the YAML library found. File is nil when that is no YAML.
func explainYAML(err error, file *ast.File, name string) error {
	e := &ConfigError{File: name, Err: err, Fix: "correct the YAML there"}
	var found yaml.Error
	if !errors.As(err, &found) {
		e.Field, e.Fix = "poll", "want "+describe(reflect.TypeFor[time.Duration]()) // the one field that is parsed without a place
		return e
	}
	at := found.GetToken()
	e.Line, e.Err = at.Position.Line, errors.New(found.GetMessage())
	if file != nil {
		e.Field = fieldAt(file, at.Position)
	}
	var unknown *yaml.UnknownFieldError
	var mistyped *yaml.TypeError
	var misplaced *yaml.UnexpectedNodeTypeError
	switch {
	case errors.As(err, &unknown):
		e.Err, e.Fix = errors.New("unknown field"), suggest(at.Value)
	case errors.As(err, &mistyped):
		e.Err, e.Fix = errors.New("a value of the wrong type"), "want "+describe(mistyped.DstType)
	case errors.As(err, &misplaced) && misplaced.Expected == ast.SequenceType:
		e.Err, e.Fix = errors.New("a value of the wrong type"), "want "+describe(reflect.TypeFor[[]string]())
	}
	return e
}

// onlyDocument returns what the file says, nil when it says nothing. It refuses the parts of YAML that a configuration
// has no use for: more documents, tags, on some of which the library panics, and aliases, which hide what a file says.
func onlyDocument(file *ast.File, name string) (ast.Node, error) {
	if len(file.Docs) > 1 {
		return nil, &ConfigError{File: name, Err: errors.New("more than one document"), Fix: "remove the lines that begin with ---"}
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil || file.Docs[0].Body.Type() == ast.NullType {
		return nil, nil
	}
	var x extras
	ast.Walk(&x, file.Docs[0].Body)
	if x.found == nil {
		return file.Docs[0].Body, nil
	}
	return nil, &ConfigError{
		File: name, Line: x.found.GetToken().Position.Line, Field: strings.TrimPrefix(x.found.GetPath(), "$."),
		Err: fmt.Errorf("YAML of kind %s", x.found.Type()), Fix: "write the value itself",
	}
}

// extras finds a node that a configuration has no use for, and does not look inside it.
type extras struct{ found ast.Node }

func (x *extras) Visit(n ast.Node) ast.Visitor {
	switch n.Type() {
	case ast.TagType, ast.AnchorType, ast.AliasType, ast.MergeKeyType, ast.DirectiveType:
		x.found = n
	}
	if x.found != nil {
		return nil
	}
	return x
}

// fieldAt returns the field whose name or value begins at pos, such as log.level.
func fieldAt(file *ast.File, pos *token.Position) string {
	f := finder{line: pos.Line, column: pos.Column}
	for _, doc := range file.Docs {
		ast.Walk(&f, doc)
	}
	return strings.TrimPrefix(strings.TrimPrefix(f.path, "$"), ".")
}

type finder struct {
	line, column int
	path         string // of the last node found, which is the innermost
}

func (f *finder) Visit(n ast.Node) ast.Visitor {
	if t := n.GetToken(); t != nil && t.Position.Line == f.line && t.Position.Column == f.column {
		f.path = n.GetPath()
	}
	return f
}

func describe(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Int:
		return "a whole number"
	case t.Kind() == reflect.Float64:
		return "a number"
	case t.Kind() == reflect.Int64:
		return "a time with its unit, such as 5s or 500ms"
	case t.Kind() == reflect.Slice:
		return "a list, one item a line after a dash, or all in [ ]"
	}
	return "text"
}

// readSmall reads a file that a user wrote by hand, at most limit bytes.
func readSmall(fsys files.FS, path string, limit int64) ([]byte, error) {
	f, _, err := files.OpenRegular(fsys, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s: larger than %d bytes, the most that is read", path, limit)
	}
	return b, nil
}
