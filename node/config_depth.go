package node

import (
	"bytes"
	"errors"

	"github.com/goccy/go-yaml/token"
)

// The YAML library takes time by the square of how deep a text nests, of the empty lines in a block of text and of the
// documents in a file: a few ten thousand of them would keep a node from starting for minutes. No configuration is so.
const (
	maxConfigDepth = 16 // log.level, the deepest there is, has 2
	maxConfigLines = 4096
)

// checkLines refuses more lines than a configuration has, before anything looks at them.
func checkLines(text []byte, name string) error {
	if bytes.Count(text, []byte{'\n'})+bytes.Count(text, []byte{'\r'}) <= 2*maxConfigLines { // both may end one line
		return nil
	}
	return &ConfigError{File: name, Err: errors.New("too many lines"), Fix: "remove what is no part of a configuration"}
}

// checkDepth refuses nesting that no configuration has: brackets within brackets, and the marks that one line can
// stack up. Block nesting over several lines needs an indent that grows, which the size of the file bounds.
func checkDepth(tokens token.Tokens, name string) error {
	brackets, marks, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, marks = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType, token.TagType, token.AnchorType:
			marks++
		}
		if brackets > maxConfigDepth || marks > maxConfigDepth {
			return &ConfigError{File: name, Line: line, Err: errors.New("nested too deep"), Fix: "remove what is no part of a configuration"}
		}
	}
	return nil
}
