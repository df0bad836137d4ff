package delta

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLocalName bounds the names that become names of files and directories.
const maxLocalName = 128

// checkLocalName makes sure that a name that comes from outside may name a file in a directory of ours, and cannot
// lead out of it, hide there or confuse whoever reads a listing.
func checkLocalName(name string) error {
	switch {
	case name == "" || len(name) > maxLocalName:
		return fmt.Errorf("name of %d bytes, want 1 to %d", len(name), maxLocalName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("name %q: only printable characters", name)
	case strings.HasPrefix(name, ".") || strings.ContainsAny(name, `/\:`):
		return fmt.Errorf("name %q: no leading dot, no slash, backslash or colon", name)
	}
	return nil
}
