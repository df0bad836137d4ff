package delta

import (
	"errors"
	"fmt"

	"github.com/ipfs/go-cid"
)

// manifestVersion is the format of the record.
const manifestVersion = 2

// manifestRecord is the root block of a Manifest. Chunks, Leaves and Outboard are digests one after the other; either
// Chunks names the chunks, or Leaves names blocks that consist of the digests of leafChunks chunks each.
type manifestRecord struct {
	Version   uint64          `cbor:"0,keyasint"`
	Schema    []byte          `cbor:"1,keyasint"`
	Base      []byte          `cbor:"2,keyasint"`
	Target    []byte          `cbor:"3,keyasint"`
	Elements  uint64          `cbor:"4,keyasint"`
	Changed   uint64          `cbor:"5,keyasint"`
	Dense     uint64          `cbor:"6,keyasint"`
	Coded     uint64          `cbor:"7,keyasint"`
	ChunkSize uint32          `cbor:"8,keyasint"`
	Chunks    []byte          `cbor:"9,keyasint,omitempty"`
	Leaves    []byte          `cbor:"10,keyasint,omitempty"`
	Groups    []uint64        `cbor:"11,keyasint,omitempty"`
	Sidecars  []sidecarRecord `cbor:"12,keyasint,omitempty"`
	Outboard  []byte          `cbor:"13,keyasint,omitempty"`
}

type sidecarRecord struct {
	_    struct{} `cbor:",toarray"`
	Name string
	Size uint64
}

// EncodedManifest is a manifest in blocks: the root, whose content ID is that of the manifest, and the leaves that
// the root names, in order. A manifest of few chunks has no leaves.
type EncodedManifest struct {
	Root   []byte
	Leaves [][]byte
}

// ID names the manifest.
func (e EncodedManifest) ID() cid.Cid { return Sum(e.Root) }

// Encode returns the canonical bytes of m.
func (m *Manifest) Encode() (EncodedManifest, error) {
	if err := m.Validate(); err != nil {
		return EncodedManifest{}, err
	}
	e, err := m.encode()
	if err != nil {
		return EncodedManifest{}, fmt.Errorf("manifest: %w", err)
	}
	return e, nil
}

func (m *Manifest) encode() (e EncodedManifest, err error) {
	r := manifestRecord{
		Version: manifestVersion, Base: m.Base[:], Target: m.Target[:],
		Elements: m.Elements, Changed: m.Changed, Dense: m.Dense, Coded: m.Coded, ChunkSize: m.ChunkSize, Groups: m.Groups,
	}
	if r.Schema, err = Digest(m.Schema); err != nil {
		return e, fmt.Errorf("schema: %w", err)
	}
	for _, s := range m.Sidecars {
		r.Sidecars = append(r.Sidecars, sidecarRecord{Name: s.Name, Size: s.Size})
	}
	if r.Outboard, err = joinDigests(m.Outboard); err != nil {
		return e, fmt.Errorf("outboard: %w", err)
	}
	chunks, err := joinDigests(m.Chunks)
	if err != nil {
		return e, fmt.Errorf("chunks: %w", err)
	}
	if len(m.Chunks) <= inlineChunks {
		r.Chunks = chunks
		chunks = nil
	}
	for len(chunks) > 0 {
		n := min(len(chunks), MaxLeaf)
		leaf := chunks[:n:n]
		digest, err := Digest(Sum(leaf))
		if err != nil {
			return e, err
		}
		r.Leaves = append(r.Leaves, digest...)
		e.Leaves = append(e.Leaves, leaf)
		chunks = chunks[n:]
	}
	if e.Root, err = MarshalRecord(r); err == nil && len(e.Root) > MaxManifest {
		err = fmt.Errorf("%d bytes, at most %d", len(e.Root), MaxManifest)
	}
	return e, err
}

// LeavesOf returns the names of the leaves of the manifest whose root block is b.
func LeavesOf(b []byte) ([]cid.Cid, error) {
	_, leaves, err := decodeManifest(b)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return leaves, nil
}

// DecodeManifest reads what Encode wrote and refuses everything else. Leaf returns the block of that name; it is
// called for the leaves in order, and what it returns is checked.
func DecodeManifest(b []byte, leaf func(id cid.Cid) ([]byte, error)) (*Manifest, error) {
	m, leaves, err := decodeManifest(b)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	want, err := m.validate()
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	for i, id := range leaves {
		names, err := readLeaf(id, min(leafChunks, want-len(m.Chunks)), leaf)
		if err != nil {
			return nil, fmt.Errorf("manifest: leaf %d of %d: %w", i, len(leaves), err)
		}
		m.Chunks = append(m.Chunks, names...)
	}
	m.parts = m.cutFrom()
	return m, m.Validate()
}

func readLeaf(id cid.Cid, chunks int, leaf func(cid.Cid) ([]byte, error)) ([]cid.Cid, error) {
	b, err := leaf(id)
	if err != nil {
		return nil, err
	}
	if len(b) != chunks*RootSize {
		return nil, fmt.Errorf("%d bytes for %d chunks", len(b), chunks)
	}
	if err := Check(id, b); err != nil {
		return nil, err
	}
	return splitDigests(b)
}

// decodeManifest reads the root block: all but the chunks that are named in leaves.
func decodeManifest(b []byte) (m *Manifest, leaves []cid.Cid, err error) {
	if len(b) > MaxManifest {
		return nil, nil, fmt.Errorf("%d bytes, at most %d", len(b), MaxManifest)
	}
	var r manifestRecord
	if err := unmarshalVersion(b, &r, manifestVersion); err != nil {
		return nil, nil, err
	}
	if len(r.Base) != RootSize || len(r.Target) != RootSize {
		return nil, nil, errors.New("roots of a wrong length")
	}
	m = &Manifest{
		Base: Root(r.Base), Target: Root(r.Target),
		Elements: r.Elements, Changed: r.Changed, Dense: r.Dense, Coded: r.Coded, ChunkSize: r.ChunkSize, Groups: r.Groups,
	}
	for _, s := range r.Sidecars {
		m.Sidecars = append(m.Sidecars, Sidecar{Name: s.Name, Size: s.Size})
	}
	if m.Schema, err = FromDigest(r.Schema); err != nil {
		return nil, nil, fmt.Errorf("schema: %w", err)
	}
	if m.Outboard, err = splitDigests(r.Outboard); err != nil {
		return nil, nil, fmt.Errorf("outboard: %w", err)
	}
	if m.Chunks, err = splitDigests(r.Chunks); err != nil {
		return nil, nil, fmt.Errorf("chunks: %w", err)
	}
	if leaves, err = splitDigests(r.Leaves); err != nil {
		return nil, nil, fmt.Errorf("leaves: %w", err)
	}
	return m, leaves, m.checkLevels(len(leaves))
}

// checkLevels makes sure that chunks are named in one place only, and in leaves only when there are many.
func (m *Manifest) checkLevels(leaves int) error {
	n, err := m.validate()
	if err != nil {
		return err
	}
	inline, deep := n, 0
	if n > inlineChunks {
		inline, deep = 0, (n+leafChunks-1)/leafChunks
	}
	if len(m.Chunks) != inline || leaves != deep {
		return fmt.Errorf("%d chunks and %d leaves for %d bytes, want %d and %d", len(m.Chunks), leaves, m.Bytes(), inline, deep)
	}
	return nil
}

func joinDigests(ids []cid.Cid) ([]byte, error) {
	b := make([]byte, 0, RootSize*len(ids))
	for i, id := range ids {
		d, err := Digest(id)
		if err != nil {
			return nil, fmt.Errorf("%d: %w", i, err)
		}
		b = append(b, d...)
	}
	return b, nil
}

func splitDigests(b []byte) ([]cid.Cid, error) {
	if len(b)%RootSize != 0 {
		return nil, errors.New("digests of a wrong length")
	}
	ids := make([]cid.Cid, 0, len(b)/RootSize)
	for ; len(b) > 0; b = b[RootSize:] {
		id, err := FromDigest(b[:RootSize])
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
