package delta

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/ipfs/go-cid"
)

const (
	// MinChunk and MaxChunk bound the size of a chunk in bytes; it is a power of two between them.
	MinChunk = 16 << 10
	MaxChunk = 1 << 20
	// MaxBlock bounds every other block in bytes; MaxManifest and MaxLeaf bound the two levels of a manifest.
	MaxBlock    = 16 << 20
	MaxManifest = 1 << 20
	MaxLeaf     = leafChunks * RootSize
	// MaxChunks bounds the chunks of one edge, at most 4 TiB of code.
	MaxChunks = 1 << 22

	maxOutboard  = 1 << 12 // blocks of an outboard: a state of 2^46 words
	inlineChunks = 1 << 10 // named in the root of a manifest; more of them are in leaves
	leafChunks   = 4 << 10 // named in one leaf: 128 KiB
)

// Manifest describes one edge of the version graph: the code that leads from the state Base to the state Target.
// Base is zero for an anchor, which leads there from nothing. Once written or read a manifest is not changed.
type Manifest struct {
	Schema    cid.Cid   // schema of Target, and of Base unless that is zero
	Base      Root      // state before, zero for an anchor
	Target    Root      // state after
	Elements  uint64    // elements in Target
	Changed   uint64    // elements that differ from Base; all of them for an anchor
	Dense     uint64    // bytes of Target
	Coded     uint64    // bytes of the streams of all groups
	Groups    []uint64  // bytes of the stream of each group of the schema; nil when it has one
	Sidecars  []Sidecar // files that travel with an anchor, in the order of their names
	ChunkSize uint32    // bytes of every chunk but the last of a group and of the sidecars
	Chunks    []cid.Cid // the streams of the groups in order, then the sidecars as one, each cut from its begin
	Outboard  []cid.Cid // blocks of Target's outboard; they are no chunks, and fetched only when needed

	parts []part // what Chunks are cut from, once known
}

// part is a run of bytes that chunks are cut from: the stream of a group, or all sidecars.
type part struct {
	first int    // its first chunk
	begin uint64 // bytes of all parts before it
	size  uint64 // bytes
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

// Bytes returns the bytes of all chunks.
func (m *Manifest) Bytes() uint64 { return m.Coded + m.sidecarBytes() }

// ChunkLen returns the length of chunk i in bytes.
func (m *Manifest) ChunkLen(i int) int {
	p := m.partOf(i)
	return int(min(uint64(m.ChunkSize), p.size-uint64(i-p.first)*uint64(m.ChunkSize)))
}

// chunkBegin returns the bytes of all chunks before chunk i.
func (m *Manifest) chunkBegin(i int) uint64 {
	p := m.partOf(i)
	return p.begin + uint64(i-p.first)*uint64(m.ChunkSize)
}

// partOf returns the part that chunk i is cut from.
func (m *Manifest) partOf(i int) part {
	if m.Groups == nil && len(m.Sidecars) == 0 {
		return part{size: m.Coded}
	}
	parts := m.cutFrom()
	return parts[sortedIndex(len(parts), func(k int) bool { return parts[k].first > i })-1]
}

// cutFrom returns the parts in order. Each group is one, then come the sidecars if there are any.
func (m *Manifest) cutFrom() []part {
	if m.parts != nil {
		return m.parts
	}
	sizes := m.Groups
	if sizes == nil {
		sizes = []uint64{m.Coded}
	}
	if n := m.sidecarBytes(); n > 0 {
		sizes = append(slices.Clip(sizes), n)
	}
	parts, next := make([]part, 0, len(sizes)), part{}
	for _, n := range sizes {
		next.size = n
		parts = append(parts, next)
		next.first += int(chunkCount(n, m.ChunkSize))
		next.begin += n
	}
	return parts
}

// streamChunks returns how many chunks hold the streams; those of the sidecars follow.
func (m *Manifest) streamChunks() int {
	if m.sidecarBytes() == 0 {
		return len(m.Chunks)
	}
	parts := m.cutFrom()
	return parts[len(parts)-1].first
}

func chunkCount(n uint64, size uint32) uint64 { return (n + uint64(size) - 1) / uint64(size) }

// Validate reports the first rule that m breaks. Encoding and decoding both apply it.
func (m *Manifest) Validate() error {
	want, err := m.validate()
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	if want != len(m.Chunks) {
		return fmt.Errorf("manifest: %d chunks for %d bytes, want %d", len(m.Chunks), m.Bytes(), want)
	}
	return nil
}

// validate checks all but Chunks and returns how many of them there must be.
func (m *Manifest) validate() (chunks int, err error) {
	if m.ChunkSize < MinChunk || m.ChunkSize > MaxChunk || bits.OnesCount32(m.ChunkSize) != 1 {
		return 0, fmt.Errorf("chunk size %d: want a power of two from %d to %d", m.ChunkSize, MinChunk, MaxChunk)
	}
	if m.Target.IsZero() {
		return 0, fmt.Errorf("no target root")
	}
	if m.Changed > m.Elements {
		return 0, fmt.Errorf("%d of %d elements changed", m.Changed, m.Elements)
	}
	if len(m.Outboard) > maxOutboard {
		return 0, fmt.Errorf("%d blocks of the outboard, at most %d", len(m.Outboard), maxOutboard)
	}
	if err := m.validateSidecars(); err != nil {
		return 0, err
	}
	const most = uint64(MaxChunks) * MaxChunk
	if m.Coded == 0 || m.Coded > most {
		return 0, fmt.Errorf("%d coded bytes, want 1 to %d", m.Coded, most)
	}
	if err := m.validateGroups(most); err != nil {
		return 0, err
	}
	n := uint64(0)
	for _, p := range m.cutFrom() {
		n += chunkCount(p.size, m.ChunkSize)
	}
	if n > MaxChunks {
		return 0, fmt.Errorf("%d chunks, at most %d", n, MaxChunks)
	}
	return int(n), nil
}

func (m *Manifest) validateGroups(most uint64) error {
	if m.Groups == nil {
		return nil
	}
	if len(m.Groups) < 2 || len(m.Groups) > maxGroups {
		return fmt.Errorf("%d groups listed, want 2 to %d, or none for one", len(m.Groups), maxGroups)
	}
	sum := uint64(0)
	for g, n := range m.Groups {
		if n == 0 || n > most {
			return fmt.Errorf("group %d of %d bytes", g, n)
		}
		sum += n // no overflow: 2^16 groups of at most 2^42 bytes
	}
	if sum != m.Coded {
		return fmt.Errorf("groups of %d bytes in all, but %d coded bytes", sum, m.Coded)
	}
	return nil
}
