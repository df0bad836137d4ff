package mesh

import (
	"fmt"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/sparsecast/sparsecast/delta"
)

// Bounds on what a record may hold. They keep the answer to one question for the newest head under 1 MiB.
const (
	maxName      = 128       // bytes of a run's name or a cluster's label
	maxEdges     = 4096      // edges of one catalogue
	maxVersions  = 1024      // versions of one catalogue
	maxHead      = 4 << 10   // bytes of a head, signed or not
	maxCatalogue = 600 << 10 // bytes of a catalogue, signed or not
)

// Catalogue is the signed, sequenced list of the edges on offer. It may grow without touching a head.
type Catalogue struct {
	Run   string
	Epoch uint64
	Seq   uint64
	Edges []Edge
	// Versions names the states that the edges touch, ascending, the newest last: so a version asked for by its number
	// has a root. Only the newest may be one that no edge touches.
	Versions []VersionRoot
}

// VersionRoot names the state of one version.
type VersionRoot struct {
	Version Version
	Root    delta.Root
}

const catalogueFormat = 2 // 1 had no versions

// catalogueRecord is a Catalogue on the wire.
type catalogueRecord struct {
	Format   uint64          `cbor:"0,keyasint"`
	Run      string          `cbor:"1,keyasint"`
	Epoch    uint64          `cbor:"2,keyasint"`
	Seq      uint64          `cbor:"3,keyasint"`
	Edges    []edgeRecord    `cbor:"4,keyasint"`
	Versions []versionRecord `cbor:"5,keyasint"`
}

// versionRecord is a VersionRoot on the wire.
type versionRecord struct {
	_      struct{} `cbor:",toarray"`
	Epoch  uint64
	Number uint64
	Root   []byte
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
	return c.checkVersions()
}

func (c *Catalogue) checkVersions() error {
	if len(c.Versions) > maxVersions {
		return fmt.Errorf("%d versions, at most %d; drop old ones from the offer", len(c.Versions), maxVersions)
	}
	touched := c.touched()
	for i, v := range c.Versions {
		_, ok := touched[v.Root]
		switch {
		case v.Root.IsZero():
			return fmt.Errorf("version %s has no root", v.Version)
		case v.Version.Epoch > math.MaxInt64:
			return fmt.Errorf("version %s is beyond all clocks", v.Version)
		case i > 0 && v.Version.Compare(c.Versions[i-1].Version) <= 0:
			return fmt.Errorf("version %s stands behind %s", v.Version, c.Versions[i-1].Version)
		case !ok && i < len(c.Versions)-1:
			return fmt.Errorf("no edge touches version %s", v.Version)
		}
	}
	return nil
}

// touched returns the roots that the edges lead from or to.
func (c *Catalogue) touched() map[delta.Root]struct{} {
	roots := make(map[delta.Root]struct{}, 2*len(c.Edges))
	for _, e := range c.Edges {
		roots[e.Base], roots[e.Target] = struct{}{}, struct{}{}
	}
	delete(roots, delta.Root{}) // where anchors start is no state
	return roots
}

// Note adds a version, the newest, and forgets those that no edge touches and the oldest beyond the bound.
func (c *Catalogue) Note(newest VersionRoot) {
	touched := c.touched()
	kept := make([]VersionRoot, 0, len(c.Versions)+1)
	for _, v := range c.Versions {
		if _, ok := touched[v.Root]; ok && v.Version.Compare(newest.Version) < 0 {
			kept = append(kept, v)
		}
	}
	kept = append(kept, newest)
	c.Versions = kept[max(0, len(kept)-maxVersions):]
}

// Numbered returns the newest version of that number.
func (c *Catalogue) Numbered(number uint64) (v VersionRoot, ok bool) {
	for _, v := range slices.Backward(c.Versions) {
		if v.Version.Number == number {
			return v, true
		}
	}
	return VersionRoot{}, false
}

// Knows tells whether root is that of a version.
func (c *Catalogue) Knows(root delta.Root) bool {
	return slices.ContainsFunc(c.Versions, func(v VersionRoot) bool { return v.Root == root })
}

// Encode returns the canonical bytes of c, unsigned.
func (c *Catalogue) Encode() ([]byte, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	r := catalogueRecord{
		Format: catalogueFormat, Run: c.Run, Epoch: c.Epoch, Seq: c.Seq,
		Edges: make([]edgeRecord, len(c.Edges)), Versions: make([]versionRecord, len(c.Versions)),
	}
	for i := range c.Edges {
		var err error
		if r.Edges[i], err = c.Edges[i].record(); err != nil {
			return nil, fmt.Errorf("catalogue: edge %d: %w", i, err)
		}
	}
	for i, v := range c.Versions {
		r.Versions[i] = versionRecord{Epoch: v.Version.Epoch, Number: v.Version.Number, Root: v.Root[:]}
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
	if r.Format != catalogueFormat {
		return Catalogue{}, fmt.Errorf("catalogue: format %d, this build reads %d; give all hosts one version of sparsecast", r.Format, catalogueFormat)
	}
	if r.Edges == nil || len(r.Edges) > maxEdges {
		return Catalogue{}, fmt.Errorf("catalogue: %d edges, want a list of at most %d", len(r.Edges), maxEdges)
	}
	if r.Versions == nil || len(r.Versions) > maxVersions {
		return Catalogue{}, fmt.Errorf("catalogue: %d versions, want a list of at most %d", len(r.Versions), maxVersions)
	}
	c := Catalogue{
		Run: r.Run, Epoch: r.Epoch, Seq: r.Seq,
		Edges: make([]Edge, len(r.Edges)), Versions: make([]VersionRoot, len(r.Versions)),
	}
	for i := range r.Edges {
		var err error
		if c.Edges[i], err = r.Edges[i].edge(); err != nil {
			return Catalogue{}, fmt.Errorf("catalogue: edge %d: %w", i, err)
		}
	}
	for i, v := range r.Versions {
		root, err := rootOf(v.Root)
		if err != nil {
			return Catalogue{}, fmt.Errorf("catalogue: version %d: %w", i, err)
		}
		c.Versions[i] = VersionRoot{Version{v.Epoch, v.Number}, root}
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
