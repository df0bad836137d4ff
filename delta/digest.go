package delta

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"

	"github.com/zeebo/xxh3"
)

// blockDigest is the xxh3-128 of a block. It catches wrong bases, bugs and damage, not adversaries: those are
// stopped by signatures and by the sha2-256 of every chunk.
type blockDigest [16]byte

func digestBlock(b []byte) blockDigest { return xxh3.Hash128(b).Bytes() }

// rootHash folds block digests, given in the order of tiles, into the root of a state:
//
//	tensor = sha256(0x01 | digests of its blocks)
//	root   = sha256(0x02 | digest of the schema's ID | tensor digests in order)
//
// A tensor without elements has no blocks and is hashed all the same, and the schema pins names, dtypes and shapes.
type rootHash struct {
	tensors int // in the schema
	current int // tensor whose blocks are being folded
	tensor  hash.Hash
	state   hash.Hash
}

func newRootHash(s *Schema) (*rootHash, error) {
	id, err := Digest(s.ID())
	if err != nil {
		return nil, err
	}
	h := &rootHash{tensors: len(s.Tensors()), tensor: sha256.New(), state: sha256.New()}
	h.tensor.Write([]byte{1})
	h.state.Write([]byte{2})
	h.state.Write(id)
	return h, nil
}

// add folds the digest of the next block, which belongs to tensor t.
func (h *rootHash) add(t int, d blockDigest) {
	h.closeUpTo(t)
	h.tensor.Write(d[:])
}

func (h *rootHash) addRun(run []tile, digests []blockDigest) {
	for i, t := range run {
		h.add(t.tensor, digests[i])
	}
}

func (h *rootHash) closeUpTo(t int) {
	for ; h.current < t; h.current++ {
		h.state.Write(h.tensor.Sum(nil))
		h.tensor.Reset()
		h.tensor.Write([]byte{1})
	}
}

// root ends the folding.
func (h *rootHash) root() Root {
	h.closeUpTo(h.tensors)
	return Root(h.state.Sum(nil))
}

// RootOf reads the whole of s and returns its root. Progress, if not nil, hears the bytes read so far.
func RootOf(ctx context.Context, s State, progress func(dense uint64)) (Root, error) {
	h, err := newRootHash(s.Schema())
	if err != nil {
		return Root{}, err
	}
	type hashed struct {
		run     []tile
		digests []blockDigest
	}
	var read uint64
	err = inOrder(ctx,
		func(yield func([]tile) bool) error { frames(s.Schema())(yield); return nil },
		func() func([]tile) (hashed, error) {
			var buf frameBuffer
			return func(run []tile) (hashed, error) {
				data, err := buf.load(s, run)
				return hashed{run, digestAll(data)}, err
			}
		},
		func(f hashed) error {
			h.addRun(f.run, f.digests)
			read += denseBytes(f.run)
			report(progress, read)
			return nil
		})
	if err != nil {
		return Root{}, fmt.Errorf("hash state: %w", err)
	}
	return h.root(), nil
}

func digestAll(data [][]byte) []blockDigest {
	d := make([]blockDigest, len(data))
	for i, b := range data {
		d[i] = digestBlock(b)
	}
	return d
}

func denseBytes(run []tile) uint64 {
	var n uint64
	for _, t := range run {
		n += uint64(t.size)
	}
	return n
}

func report(progress func(uint64), n uint64) {
	if progress != nil {
		progress(n)
	}
}
