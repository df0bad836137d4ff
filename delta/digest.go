package delta

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"
)

// blockDigest is the xxh3-128 of a block. It catches wrong bases, bugs and damage, not adversaries: those are
// stopped by signatures and by the sha2-256 of every chunk.
type blockDigest [blockDigestSize]byte

const blockDigestSize = 16

func digestBlock(b []byte) blockDigest { return xxh3.Hash128(b).Bytes() }

// Digests are those of all blocks of a state, in the order of the stream. They tell which blocks of a state differ
// from what they should be, and fold into its root:
//
//	piece = sha256(0x01 | digests of its blocks)
//	group = sha256(0x03 | pieces of the group in order)
//	root  = sha256(0x02 | digest of the schema's ID | groups in order)
//
// So who follows one group checks it against the root by the digests of the other groups alone. A piece without
// elements has no blocks and is hashed all the same, and the schema pins names, dtypes, shapes and boxes.
type Digests struct{ blocks []blockDigest }

// Len returns the number of blocks.
func (d *Digests) Len() int { return len(d.blocks) }

// Diff returns the numbers of the blocks that differ, in order. Both must be of one schema.
func (d *Digests) Diff(other *Digests) []int {
	var differ []int
	for i := range max(len(d.blocks), len(other.blocks)) {
		if i >= len(d.blocks) || i >= len(other.blocks) || d.blocks[i] != other.blocks[i] {
			differ = append(differ, i)
		}
	}
	return differ
}

// Root folds the digests of a state under s.
func (d *Digests) Root(s *Schema) (Root, error) {
	if len(d.blocks) != s.Blocks() {
		return Root{}, fmt.Errorf("root: %d digests, but a state under this schema has %d blocks", len(d.blocks), s.Blocks())
	}
	groups := make([]Root, len(s.groups))
	for g := range groups {
		first, end := s.GroupBlocks(g)
		groups[g] = foldGroup(s, g, d.blocks[first:end])
	}
	return foldRoot(s, groups)
}

// foldGroup returns the digest of group g, whose blocks have these digests.
func foldGroup(s *Schema, g int, blocks []blockDigest) Root {
	group, piece := sha256.New(), sha256.New()
	group.Write([]byte{3})
	at := sortedIndex(len(s.pieces), func(i int) bool { return s.pieces[i].Group >= g })
	for ; at < len(s.pieces) && s.pieces[at].Group == g; at++ {
		piece.Reset()
		piece.Write([]byte{1})
		n := s.firstBlock(at+1) - s.firstBlock(at)
		for _, b := range blocks[:n] {
			piece.Write(b[:])
		}
		blocks = blocks[n:]
		group.Write(piece.Sum(nil))
	}
	return Root(group.Sum(nil))
}

// foldRoot returns the root of a state whose groups have these digests.
func foldRoot(s *Schema, groups []Root) (Root, error) {
	id, err := Digest(s.ID())
	if err != nil {
		return Root{}, err
	}
	h := sha256.New()
	h.Write([]byte{2})
	h.Write(id)
	for _, g := range groups {
		h.Write(g[:])
	}
	return Root(h.Sum(nil)), nil
}

// RootOf reads the whole of s and returns its root. Progress, if not nil, hears the bytes read so far.
func RootOf(ctx context.Context, s State, progress func(dense uint64)) (Root, error) {
	d, err := DigestsOf(ctx, s, progress)
	if err != nil {
		return Root{}, err
	}
	return d.Root(s.Schema())
}

// DigestsOf reads the whole of s and returns the digests of its blocks. Progress, if not nil, hears the bytes read
// so far.
func DigestsOf(ctx context.Context, s State, progress func(dense uint64)) (*Digests, error) {
	type hashed struct {
		frame
		digests []blockDigest
	}
	d := &Digests{}
	var read uint64
	err := inOrder(ctx, maxWorkers,
		func(yield func(frame) bool) error { frames(s.Schema())(yield); return nil },
		func() func(context.Context, frame) (hashed, error) {
			var buf frameBuffer
			return func(_ context.Context, f frame) (hashed, error) {
				h := hashed{frame: f}
				for _, t := range f.tiles {
					data, err := buf.loadOne(s, t)
					if err != nil {
						return h, err
					}
					h.digests = append(h.digests, digestBlock(data))
				}
				return h, nil
			}
		},
		func(f hashed) error {
			d.blocks = append(d.blocks, f.digests...)
			read += f.dense()
			report(progress, read)
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("hash state: %w", err)
	}
	d.blocks = slices.Clip(d.blocks)
	return d, nil
}

func digestAll(data [][]byte) []blockDigest {
	d := make([]blockDigest, len(data))
	for i, b := range data {
		d[i] = digestBlock(b)
	}
	return d
}

func report(progress func(uint64), n uint64) {
	if progress != nil {
		progress(n)
	}
}
