package node

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/sparsecast/sparsecast/delta"
)

// marker says what root was found in a slot, and by what its files can be told from others.
type marker struct {
	Root  delta.Root `json:"root"`
	Boot  string     `json:"boot"`
	Files string     `json:"files"`
}

func markerFile(slot string) string { return "slots/" + slot + ".json" }

// mark writes the marker of a slot whose checkpoint is c.
func (s *slots) mark(slot string, root delta.Root, c *delta.Checkpoint) error {
	stamp, err := fileStamp(c.Files())
	if err != nil {
		return err
	}
	b, err := marshalChecked(marker{Root: root, Boot: bootID(), Files: stamp})
	if err != nil {
		return err
	}
	return s.dir.WriteFile(markerFile(slot), b) // worthless after a crash of the machine anyway
}

// believe returns the root that the marker names when nothing speaks against it: the same boot, the same files. After
// another boot the files are hashed, since a crash may have lost what only the page cache knew.
func (s *slots) believe(slot string, c *delta.Checkpoint) (delta.Root, bool) {
	b, err := s.dir.ReadFile(markerFile(slot))
	if err != nil {
		return delta.Root{}, false
	}
	var m marker
	if err := unmarshalChecked(b, &m); err != nil {
		return delta.Root{}, false
	}
	stamp, err := fileStamp(c.Files())
	ok := err == nil && m.Boot != "" && m.Boot == bootID() && m.Files == stamp && !m.Root.IsZero()
	return m.Root, ok
}

// fileStamp tells files apart by name, size and time of their last change.
func fileStamp(paths []string) (string, error) {
	var b strings.Builder
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s %d %d\n", p, info.Size(), info.ModTime().UnixNano())
	}
	return b.String(), nil
}

// bootID names the current boot of the machine; it is empty where there is no such thing, and markers are not
// believed then.
var bootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
})
