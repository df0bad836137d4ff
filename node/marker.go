package node

import (
	"fmt"
	"strings"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/node/files"
)

// marker says what root was found in a slot, and by what its files can be told from others.
type marker struct {
	Root   delta.Root `json:"root"`
	Boot   string     `json:"boot"`
	Files  string     `json:"files"`
	From   delta.Root `json:"from"`             // what the slot held before it was changed where it lies, which was not finished
	Schema []byte     `json:"schema,omitempty"` // unless it is the one that the checkpoint alone tells
}

func markerFile(slot string) string { return "slots/" + slot + ".json" }

// marked is what a marker is written about.
type marked interface {
	Files() []string
	odd() []byte
}

// mark writes the marker of a slot which holds c.
func (s *slots) mark(slot string, root delta.Root, c marked) error {
	stamp, err := fileStamp(s.dir.FS(), c.Files())
	if err != nil {
		return err
	}
	b, err := marshalChecked(marker{Root: root, Boot: s.dir.FS().BootID(), Files: stamp, Schema: c.odd()})
	if err != nil {
		return err
	}
	return s.place.WriteFile(markerFile(slot), b) // worthless after a crash of the machine anyway
}

// unmark takes a slot's marker away before it is changed in place, so that after a crash it is read before it is believed.
func (s *slots) unmark(slot string) error {
	m, err := s.readMarker(slot)
	if err != nil || m.Boot == "" {
		return nil
	}
	m.Boot = "" // no boot; what it is to hold is still good to know
	b, err := marshalChecked(m)
	if err != nil {
		return err
	}
	return s.place.WriteFile(markerFile(slot), b)
}

// believe returns the root that the marker names when nothing speaks against it: the same boot, files and schema. After
// another boot the files are hashed, since a crash may have lost what only the page cache knew; and always where boots
// have no names.
func (s *slots) believe(slot string, c *states) (delta.Root, bool) {
	m, err := s.readMarker(slot)
	if err != nil {
		return delta.Root{}, false
	}
	stamp, err := fileStamp(s.dir.FS(), c.Files())
	return m.Root, err == nil && s.sameBoot(m) && m.Files == stamp && !m.Root.IsZero() && c.sameSchema(m.Schema)
}

func (s *slots) readMarker(slot string) (m marker, err error) {
	b, err := s.place.ReadFile(markerFile(slot))
	if err == nil {
		err = unmarshalChecked(b, &m)
	}
	return m, err
}

func (s *slots) sameBoot(m marker) bool { return m.Boot != "" && m.Boot == s.dir.FS().BootID() }

// markedInThisBoot tells whether a slot can be believed without reading it, if its files are those marked.
func (s *slots) markedInThisBoot(slot string) bool {
	m, err := s.readMarker(slot)
	return err == nil && s.sameBoot(m)
}

// fileStamp tells files apart by name, size and time of their last change.
func fileStamp(fsys files.FS, paths []string) (string, error) {
	var b strings.Builder
	for _, p := range paths {
		info, err := fsys.Stat(p)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s %d %d\n", p, info.Size(), info.ModTime().UnixNano())
	}
	return b.String(), nil
}
