package mesh

import (
	"fmt"
	"math"
	"unicode"
	"unicode/utf8"

	"github.com/sparsecast/sparsecast/delta"
)

// Bounds on what a record may hold. They keep the answer to one question for the newest head under 1 MiB.
const (
	maxName      = 128       // bytes of a run's name or a cluster's label
	maxEdges     = 4096      // edges of one catalogue
	maxHead      = 4 << 10   // bytes of a head, signed or not
	maxCatalogue = 600 << 10 // bytes of a catalogue, signed or not
)

// Catalogue is the signed, sequenced list of the edges on offer. It may grow without touching a head.
type Catalogue struct {
	Run   string
	Epoch uint64
	Seq   uint64
	Edges []Edge
}

// catalogueRecord is a Catalogue on the wire.
type catalogueRecord struct {
	Format uint64       `cbor:"0,keyasint"`
	Run    string       `cbor:"1,keyasint"`
	Epoch  uint64       `cbor:"2,keyasint"`
	Seq    uint64       `cbor:"3,keyasint"`
	Edges  []edgeRecord `cbor:"4,keyasint"`
}

// Validate reports the first rule that c breaks. Encoding and decoding both apply it.
func (c *Catalogue) Validate() error {
	if err := checkRun(c.Run); err != nil {
		return err
	}
	if len(c.Edges) > maxEdges {
		return fmt.Errorf("%d edges, at most %d; drop old versions from the offer", len(c.Edges), maxEdges)
	}
	if c.Epoch > math.MaxInt64 {
		return fmt.Errorf("epoch %d is beyond all clocks", c.Epoch)
	}
	for i, e := range c.Edges {
		if !e.Manifest.Defined() || e.Target.IsZero() {
			return fmt.Errorf("edge %d leads nowhere", i)
		}
	}
	return nil
}

// Encode returns the canonical bytes of c, unsigned.
func (c *Catalogue) Encode() ([]byte, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	r := catalogueRecord{Format: 1, Run: c.Run, Epoch: c.Epoch, Seq: c.Seq, Edges: make([]edgeRecord, len(c.Edges))}
	for i := range c.Edges {
		var err error
		if r.Edges[i], err = c.Edges[i].record(); err != nil {
			return nil, fmt.Errorf("catalogue: edge %d: %w", i, err)
		}
	}
	return delta.MarshalRecord(r)
}

// DecodeCatalogue reads what Encode wrote and refuses everything else. It knows nothing of signatures.
func DecodeCatalogue(b []byte) (Catalogue, error) {
	if len(b) > maxCatalogue {
		return Catalogue{}, fmt.Errorf("catalogue: %d bytes, at most %d", len(b), maxCatalogue)
	}
	var r catalogueRecord
	if err := delta.UnmarshalRecord(b, &r); err != nil {
		return Catalogue{}, fmt.Errorf("catalogue: %w", err)
	}
	if r.Format != 1 {
		return Catalogue{}, fmt.Errorf("catalogue: format %d, this build reads 1; upgrade sparsecast", r.Format)
	}
	if r.Edges == nil || len(r.Edges) > maxEdges {
		return Catalogue{}, fmt.Errorf("catalogue: %d edges, want a list of at most %d", len(r.Edges), maxEdges)
	}
	c := Catalogue{Run: r.Run, Epoch: r.Epoch, Seq: r.Seq, Edges: make([]Edge, len(r.Edges))}
	for i := range r.Edges {
		var err error
		if c.Edges[i], err = r.Edges[i].edge(); err != nil {
			return Catalogue{}, fmt.Errorf("catalogue: edge %d: %w", i, err)
		}
	}
	if err := c.Validate(); err != nil {
		return Catalogue{}, fmt.Errorf("catalogue: %w", err)
	}
	return c, nil
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
