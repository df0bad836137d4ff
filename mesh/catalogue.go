package mesh

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Bounds on what a signed record may hold.
const (
	maxName  = 128  // bytes of a run's name or a cluster's label
	maxEdges = 4096 // edges of one catalogue
)

// Catalogue is the signed, sequenced list of the edges on offer. It may grow without touching a head.
type Catalogue struct {
	Run   string
	Epoch uint64
	Seq   uint64
	Edges []Edge
}

// checkRun reports why name cannot be a run's name.
func checkRun(name string) error {
	if name == "" || len(name) > maxName || !utf8.ValidString(name) {
		return fmt.Errorf("run name of %d bytes: want 1 to %d of UTF-8", len(name), maxName)
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("run name %q: want printable characters only", name)
		}
	}
	return nil
}
