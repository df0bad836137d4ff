package main

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestHelpTeaches wants an example that can be copied from every subcommand, whichever are added.
func TestHelpTeaches(t *testing.T) {
	parser, err := kong.New(&cli{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range parser.Model.Children {
		if !strings.Contains(c.Detail, "sparsecast "+c.Name) {
			t.Errorf("sparsecast %s --help shows no example of it", c.Name)
		}
		for line := range strings.Lines(c.Detail) {
			if strings.HasPrefix(line, "sparsecast ") {
				t.Errorf("sparsecast %s --help: indent %q, or it is wrapped as prose", c.Name, line)
			}
		}
	}
}
