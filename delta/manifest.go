package delta

import (
	"fmt"
	"math/bits"

	"github.com/ipfs/go-cid"
)

const (
	// MinChunk and MaxChunk bound the size of a chunk in bytes; it is a power of two between them.
	MinChunk = 16 << 10
	MaxChunk = 1 << 20
	// MaxBlock bounds every other block in bytes: schemas and manifests.
	MaxBlock = 16 << 20
	// maxChunks bounds the chunks of one edge, here 256 GiB of code.
	maxChunks = 1 << 18
)

// Manifest describes one edge of the version graph: the code that leads from the state Base to the state Target.
// Base is zero for an anchor, which leads there from nothing.
type Manifest struct {
	Schema    cid.Cid   // schema of Target, and of Base unless that is zero
	Base      Root      // state before, zero for an anchor
	Target    Root      // state after
	Elements  uint64    // elements in Target
	Changed   uint64    // elements that differ from Base; all of them for an anchor
	Dense     uint64    // bytes of Target
	Coded     uint64    // bytes of the stream
	ChunkSize uint32    // bytes of every chunk but the last
	Chunks    []cid.Cid // the stream in order
}

// manifestRecord is a Manifest on the wire; Chunks are its digests one after the other.
type manifestRecord struct {
	Version   uint64 `cbor:"0,keyasint"`
	Schema    []byte `cbor:"1,keyasint"`
	Base      []byte `cbor:"2,keyasint"`
	Target    []byte `cbor:"3,keyasint"`
	Elements  uint64 `cbor:"4,keyasint"`
	Changed   uint64 `cbor:"5,keyasint"`
	Dense     uint64 `cbor:"6,keyasint"`
	Coded     uint64 `cbor:"7,keyasint"`
	ChunkSize uint32 `cbor:"8,keyasint"`
	Chunks    []byte `cbor:"9,keyasint"`
}

// ChunkSize returns the size to cut a payload of n bytes into: the power of two nearest above n/128,
// within MinChunk and MaxChunk. About a hundred chunks let receivers share early without drowning in requests.
func ChunkSize(n uint64) uint32 {
	want := n / 128
	if want <= MinChunk {
		return MinChunk
	}
	if want >= MaxChunk {
		return MaxChunk
	}
	return 1 << bits.Len64(want-1)
}

// ChunkLen returns the length of chunk i in bytes.
func (m *Manifest) ChunkLen(i int) int {
	if i == len(m.Chunks)-1 {
		return int(m.Coded - uint64(i)*uint64(m.ChunkSize))
	}
	return int(m.ChunkSize)
}

// Validate reports the first rule that m breaks. Encoding and decoding both apply it.
func (m *Manifest) Validate() error {
	if m.ChunkSize < MinChunk || m.ChunkSize > MaxChunk || bits.OnesCount32(m.ChunkSize) != 1 {
		return fmt.Errorf("manifest: chunk size %d: want a power of two from %d to %d", m.ChunkSize, MinChunk, MaxChunk)
	}
	if m.Coded == 0 || len(m.Chunks) > maxChunks {
		return fmt.Errorf("manifest: %d coded bytes in %d chunks: want 1 to %d chunks", m.Coded, len(m.Chunks), maxChunks)
	}
	if want := (m.Coded-1)/uint64(m.ChunkSize) + 1; want != uint64(len(m.Chunks)) {
		return fmt.Errorf("manifest: %d chunks for %d coded bytes, want %d", len(m.Chunks), m.Coded, want)
	}
	if m.Target.IsZero() {
		return fmt.Errorf("manifest: no target root")
	}
	if m.Changed > m.Elements {
		return fmt.Errorf("manifest: %d of %d elements changed", m.Changed, m.Elements)
	}
	return nil
}

// Encode returns the canonical bytes of m.
func (m *Manifest) Encode() ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	schema, err := Digest(m.Schema)
	if err != nil {
		return nil, fmt.Errorf("manifest: schema: %w", err)
	}
	r := manifestRecord{
		Version: 1, Schema: schema, Base: m.Base[:], Target: m.Target[:],
		Elements: m.Elements, Changed: m.Changed, Dense: m.Dense, Coded: m.Coded, ChunkSize: m.ChunkSize,
		Chunks: make([]byte, 0, RootSize*len(m.Chunks)),
	}
	for i, c := range m.Chunks {
		d, err := Digest(c)
		if err != nil {
			return nil, fmt.Errorf("manifest: chunk %d: %w", i, err)
		}
		r.Chunks = append(r.Chunks, d...)
	}
	return MarshalRecord(r)
}

// DecodeManifest reads what Encode wrote and refuses everything else.
func DecodeManifest(b []byte) (*Manifest, error) {
	if len(b) > MaxBlock {
		return nil, fmt.Errorf("manifest: %d bytes, at most %d", len(b), MaxBlock)
	}
	var r manifestRecord
	if err := UnmarshalRecord(b, &r); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if r.Version != 1 {
		return nil, fmt.Errorf("manifest: format %d, this build reads 1; upgrade sparsecast", r.Version)
	}
	if len(r.Base) != RootSize || len(r.Target) != RootSize || len(r.Chunks)%RootSize != 0 {
		return nil, fmt.Errorf("manifest: digests of a wrong length")
	}
	schema, err := FromDigest(r.Schema)
	if err != nil {
		return nil, fmt.Errorf("manifest: schema: %w", err)
	}
	m := &Manifest{
		Schema: schema, Base: Root(r.Base), Target: Root(r.Target),
		Elements: r.Elements, Changed: r.Changed, Dense: r.Dense, Coded: r.Coded, ChunkSize: r.ChunkSize,
		Chunks: make([]cid.Cid, 0, len(r.Chunks)/RootSize),
	}
	for d := r.Chunks; len(d) > 0; d = d[RootSize:] {
		c, err := FromDigest(d[:RootSize])
		if err != nil {
			return nil, fmt.Errorf("manifest: %w", err)
		}
		m.Chunks = append(m.Chunks, c)
	}
	return m, m.Validate()
}
