package mesh

import (
	"errors"
	"fmt"

	"github.com/sparsecast/sparsecast/delta"
)

// Bounds on one gossip message, in bytes.
const (
	maxAnnouncement = 16 << 10
	maxPassenger    = 8 << 10 // a larger catalogue does not ride along; who needs it asks
)

// announcement is what gossip carries: a signed head, and the signed catalogue when it is small.
type announcement struct {
	Head      []byte `cbor:"0,keyasint"`
	Catalogue []byte `cbor:"1,keyasint,omitempty"`
}

func newAnnouncement(l *latest) announcement {
	a := announcement{Head: l.head.Raw}
	if len(l.catalogue.Raw) <= maxPassenger {
		a.Catalogue = l.catalogue.Raw
	}
	return a
}

func (a announcement) encode() ([]byte, error) { return delta.MarshalRecord(a) }

func decodeAnnouncement(b []byte) (announcement, error) {
	if len(b) > maxAnnouncement {
		return announcement{}, fmt.Errorf("announcement: %d bytes, at most %d", len(b), maxAnnouncement)
	}
	var a announcement
	if err := delta.UnmarshalRecord(b, &a); err != nil {
		return announcement{}, fmt.Errorf("announcement: %w", err)
	}
	if len(a.Head) == 0 {
		return announcement{}, errors.New("announcement: no head")
	}
	return a, nil
}
