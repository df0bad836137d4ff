package node

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// ExampleConfig is a commented configuration of a rollout node.
//
//go:embed example.yaml
var ExampleConfig string

// maxConfigFile bounds the configuration and the peer lists beside it, in bytes.
const maxConfigFile = 1 << 20

// LoadConfig reads the configuration at path over the defaults, resolves it and validates it.
// A mistake is a *ConfigError.
func LoadConfig(path string) (*Config, error) {
	b, err := readSmall(path)
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
	file, err := parser.ParseBytes(b, 0)
	if err != nil {
		return nil, explainYAML(err, name)
	}
	if len(file.Docs) > 1 {
		return nil, &ConfigError{File: name, Err: errors.New("more than one document"), Fix: "remove the lines that begin with ---"}
	}
	c := DefaultConfig()
	if len(file.Docs) == 1 && file.Docs[0].Body != nil { // decoding nothing would clear the defaults
		if err := yaml.UnmarshalWithOptions(b, c, yaml.Strict()); err != nil {
			return nil, locate(explainYAML(err, name), file, name)
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

// explainYAML says in the words of the configuration what the YAML library found.
func explainYAML(err error, name string) error {
	e := &ConfigError{File: name, Err: err, Fix: "correct the YAML there"}
	var found yaml.Error
	if !errors.As(err, &found) {
		e.Field, e.Fix = "poll", "write a time with its unit, such as 5s or 500ms" // the one field that is parsed without a place
		return e
	}
	e.Line, e.Err = found.GetToken().Position.Line, errors.New(found.GetMessage())
	var unknown *yaml.UnknownFieldError
	var mistyped *yaml.TypeError
	switch {
	case errors.As(err, &unknown):
		e.Field, e.Err, e.Fix = found.GetToken().Value, errors.New("unknown field"), suggest(found.GetToken().Value)
	case errors.As(err, &mistyped):
		e.Err, e.Fix = errors.New("a value of the wrong type"), "want "+describe(mistyped.DstType)
		e.Field = fieldOf(mistyped.StructFieldName)
	}
	return e
}

// fieldOf turns the Go name of a field, such as Config.Keep, into its name in the file.
func fieldOf(goName *string) string {
	if goName == nil {
		return ""
	}
	owner, field, _ := strings.Cut(*goName, ".")
	t, prefix := reflect.TypeFor[Config](), ""
	if owner == "LogConfig" {
		t, prefix = reflect.TypeFor[LogConfig](), "log."
	}
	if f, ok := t.FieldByName(field); ok {
		return prefix + f.Tag.Get("yaml")
	}
	return ""
}

func describe(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Int:
		return "a whole number"
	case t.Kind() == reflect.Int64:
		return "a time with its unit, such as 5s or 500ms"
	case t.Kind() == reflect.Slice:
		return "a list, one item a line after a dash"
	}
	return "text"
}

// readSmall reads a file that a user wrote by hand.
func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxConfigFile+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxConfigFile {
		return nil, fmt.Errorf("%s: larger than %d bytes, the most that is read", path, maxConfigFile)
	}
	return b, nil
}
