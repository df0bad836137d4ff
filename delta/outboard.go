package delta

import (
	"encoding/binary"
	"fmt"

	"github.com/ipfs/go-cid"
)

// outboardBlock is the size of the blocks of an outboard; the last one of either part may be shorter.
const outboardBlock = 1 << 20

// Outboard is what lies beside an edge so that parts of it can be used and checked alone: the digests of all groups
// and blocks of the target, and the lengths of all frames of the code. It may have been read for some groups only.
type Outboard struct {
	schema *Schema
	groups []Root // digest of each group
	parts  []outboardPart
}

// outboardPart is what an outboard says of one group; nothing where it was not read.
type outboardPart struct {
	read   bool
	blocks []blockDigest
	frames []uint32 // bytes of code
}

// Outboard returns the outboard of an edge that was applied whole.
func (d Decoded) Outboard(s *Schema) *Outboard { return newOutboard(s, d.Digests, d.Frames) }

func newOutboard(s *Schema, d *Digests, frames []uint32) *Outboard {
	o := &Outboard{schema: s, groups: make([]Root, len(s.groups)), parts: make([]outboardPart, len(s.groups))}
	starts := frameStarts(s)
	for g := range s.groups {
		first, end := s.GroupBlocks(g)
		o.parts[g] = outboardPart{read: true, blocks: d.blocks[first:end], frames: frames[starts[g]:starts[g+1]]}
		o.groups[g] = foldGroup(s, g, o.parts[g].blocks)
	}
	return o
}

// frameStarts returns the number of the first frame of each group, and behind them that of all frames.
func frameStarts(s *Schema) []int {
	starts := make([]int, 1, len(s.groups)+1)
	n := 0
	for f := range frames(s) {
		for len(starts) <= f.group {
			starts = append(starts, f.number)
		}
		n = f.number + 1
	}
	for len(starts) <= len(s.groups) {
		starts = append(starts, n)
	}
	return starts
}

// blocks cuts a whole outboard into blocks, in the order in which a manifest names them.
func (o *Outboard) blocks() [][]byte {
	var digests, lengths []byte
	for _, g := range o.groups {
		digests = append(digests, g[:]...)
	}
	for _, p := range o.parts {
		for _, b := range p.blocks {
			digests = append(digests, b[:]...)
		}
		for _, n := range p.frames {
			lengths = binary.LittleEndian.AppendUint32(lengths, n)
		}
	}
	// Equal states have equal digests, whichever edge leads there: they share no block with lengths.
	return append(cutOutboard(digests), cutOutboard(lengths)...)
}

// Blocks returns the blocks of a whole outboard in the order of m.Outboard, so that whoever has applied the edge m can
// hand them on. It reports an error unless they are those that m names.
func (o *Outboard) Blocks(m *Manifest) ([][]byte, error) {
	blocks := o.blocks()
	if len(blocks) != len(m.Outboard) {
		return nil, fmt.Errorf("outboard: %d blocks, the manifest names %d", len(blocks), len(m.Outboard))
	}
	for i, b := range blocks {
		if err := Check(m.Outboard[i], b); err != nil {
			return nil, fmt.Errorf("outboard: block %d: %w", i, err)
		}
	}
	return blocks, nil
}

func cutOutboard(b []byte) (blocks [][]byte) {
	for len(b) > 0 {
		n := min(len(b), outboardBlock)
		blocks = append(blocks, b[:n:n])
		b = b[n:]
	}
	return blocks
}

// Digests returns the digests of all blocks; false when the outboard was read for some groups only.
func (o *Outboard) Digests() (*Digests, bool) {
	d := &Digests{}
	for _, p := range o.parts {
		if !p.read {
			return nil, false
		}
		d.blocks = append(d.blocks, p.blocks...)
	}
	return d, true
}

// ReadOutboard reads the outboard of the edge m for some groups, nil for all. It asks get for no more of the blocks
// that m names than it takes, checks what it gets, and that it folds to the root of the target.
func ReadOutboard(m *Manifest, s *Schema, groups []int, get func(id cid.Cid) ([]byte, error)) (*Outboard, error) {
	o, err := readOutboard(m, s, groups, get)
	if err != nil {
		return nil, fmt.Errorf("outboard of %s: %w", m.Target.Short(), err)
	}
	return o, nil
}

func readOutboard(m *Manifest, s *Schema, groups []int, get func(id cid.Cid) ([]byte, error)) (*Outboard, error) {
	if !s.ID().Equals(m.Schema) {
		return nil, fmt.Errorf("schema %s given, the manifest asks for %s", s.ID(), m.Schema)
	}
	if max(1, len(m.Groups)) != len(s.groups) {
		return nil, fmt.Errorf("%d groups, the schema has %d", max(1, len(m.Groups)), len(s.groups))
	}
	digests := &outboardReader{get: get, size: RootSize*uint64(len(s.groups)) + blockDigestSize*uint64(s.Blocks())}
	if digests.count() > uint64(len(m.Outboard)) { // a schema may claim more blocks than one can count
		return nil, fmt.Errorf("%d blocks, want at least %d", len(m.Outboard), digests.count())
	}
	starts := frameStarts(s)
	lengths := &outboardReader{get: get, size: 4 * uint64(starts[len(s.groups)])}
	n := digests.count()
	if want := n + lengths.count(); want != uint64(len(m.Outboard)) {
		return nil, fmt.Errorf("%d blocks, want %d", len(m.Outboard), want)
	}
	digests.ids, lengths.ids = m.Outboard[:n], m.Outboard[n:]
	o := &Outboard{schema: s, groups: make([]Root, len(s.groups)), parts: make([]outboardPart, len(s.groups))}
	b, err := digests.read(0, RootSize*len(o.groups))
	if err != nil {
		return nil, err
	}
	for g := range o.groups {
		o.groups[g] = Root(b[g*RootSize:])
	}
	if root, err := foldRoot(s, o.groups); err != nil || root != m.Target {
		return nil, fmt.Errorf("the groups do not fold to the root: %w", ErrWrongTarget)
	}
	if groups == nil {
		for g := range s.groups {
			groups = append(groups, g)
		}
	}
	for _, g := range groups {
		if g < 0 || g >= len(s.groups) {
			return nil, fmt.Errorf("no group %d", g)
		}
		if err := o.readGroup(g, starts, digests, lengths); err != nil {
			return nil, fmt.Errorf("group %q: %w", s.groups[g], err)
		}
		if want := m.cutFrom()[g].size; o.streamBytes(g) != want {
			return nil, fmt.Errorf("group %q: frames of %d bytes, the manifest says %d", s.groups[g], o.streamBytes(g), want)
		}
	}
	return o, nil
}

func (o *Outboard) readGroup(g int, starts []int, digests, lengths *outboardReader) error {
	first, end := o.schema.GroupBlocks(g)
	b, err := digests.read(uint64(RootSize*len(o.groups)+blockDigestSize*first), blockDigestSize*(end-first))
	if err != nil {
		return err
	}
	p := outboardPart{read: true, blocks: readDigests(b), frames: make([]uint32, starts[g+1]-starts[g])}
	if foldGroup(o.schema, g, p.blocks) != o.groups[g] {
		return fmt.Errorf("the blocks do not fold to the group: %w", ErrWrongTarget)
	}
	if b, err = lengths.read(uint64(4*starts[g]), 4*len(p.frames)); err != nil {
		return err
	}
	for i := range p.frames {
		p.frames[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	o.parts[g] = p
	return nil
}

// streamBytes returns what the stream of group g takes by the lengths of its frames.
func (o *Outboard) streamBytes(g int) uint64 {
	n := uint64(len(streamHead))
	for _, length := range o.parts[g].frames {
		n += framedBytes(length)
	}
	return n
}

// framedBytes returns what a frame of that much code takes in a stream, with its length.
func framedBytes(code uint32) uint64 {
	return uint64(len(binary.AppendUvarint(nil, uint64(code)))) + uint64(code)
}

// outboardReader reads one part of an outboard out of its blocks, which are checked. It keeps the last of them.
type outboardReader struct {
	ids  []cid.Cid
	size uint64
	get  func(id cid.Cid) ([]byte, error)
	last int // number of the block that is kept
	kept []byte
}

func (r *outboardReader) count() uint64 { return (r.size + outboardBlock - 1) / outboardBlock }

// read returns n bytes from byte off on, which must lie inside.
func (r *outboardReader) read(off uint64, n int) ([]byte, error) {
	out := make([]byte, 0, n)
	for len(out) < n {
		b, err := r.block(int(off / outboardBlock))
		if err != nil {
			return nil, err
		}
		b = b[off%outboardBlock:]
		b = b[:min(len(b), n-len(out))]
		out = append(out, b...)
		off += uint64(len(b))
	}
	return out, nil
}

func (r *outboardReader) block(i int) ([]byte, error) {
	if r.kept != nil && r.last == i {
		return r.kept, nil
	}
	b, err := r.get(r.ids[i])
	if err != nil {
		return nil, err
	}
	if want := min(outboardBlock, r.size-uint64(i)*outboardBlock); uint64(len(b)) != want {
		return nil, fmt.Errorf("block of %d bytes, want %d: %w", len(b), want, ErrMismatch)
	}
	if err := Check(r.ids[i], b); err != nil {
		return nil, err
	}
	r.last, r.kept = i, b
	return b, nil
}
