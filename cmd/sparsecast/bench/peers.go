package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/sparsecast/sparsecast/delta"
)

// peer is another way to write the same changes down.
type peer struct {
	name  string // head of its column
	about string
	zstd  bool // what write returns is compressed, each part by itself
	write func(p pair) ([][]byte, error)
	read  func(parts [][]byte, into *delta.Memory) error // which holds the old state
}

var peers = []peer{
	{
		name: "index", about: "SparseRL-Sync: a 32-bit index and the new value of each change",
		write: writeIndexes, read: readIndexes,
	},
	{
		name: "grail", about: "PULSE's v3.1: row gaps of 8 and column gaps of 16 bits, else 32, and values; zstd -1",
		zstd: true, write: writeGrail, read: readGrail,
	},
	{
		name: "gap u8", about: "PULSE's idea at its best: gaps of 8 bits with an escape, and values; zstd -1",
		zstd: true, write: writeGaps, read: readGaps,
	},
	{
		name: "xor", about: "slime, SkyRL: the XOR of each tensor that changed; zstd -1",
		zstd: true, write: writeXOR, read: readXOR,
	},
}

// patchFromPeer is the one that needs the zstd program and files.
const patchFromPeer = "patch-from"

// errTooLarge says that a format cannot take so large a state.
var errTooLarge = errors.New("the state is too large for it")

// PeerSize is what a peer's code of a pair takes.
type PeerSize struct {
	Name  string  `json:"name"`
	Bytes uint64  `json:"bytes"`
	Zstd  string  `json:"zstd,omitempty"`   // which zstd made it that small
	Ours  float64 `json:"ours_over_theirs"` // our stream and manifest
}

// measure writes a pair in the peer's way, compresses, and reads it back.
func (w peer) measure(ctx context.Context, p pair, packers []packer) (PeerSize, error) {
	size, err := w.size(ctx, p, packers)
	if err != nil {
		return size, fmt.Errorf("format %s: %w", w.name, err)
	}
	return size, nil
}

func (w peer) size(ctx context.Context, p pair, packers []packer) (PeerSize, error) {
	size := PeerSize{Name: w.name}
	parts, err := w.write(p)
	if err != nil {
		return size, err
	}
	if w.zstd {
		if size.Bytes, size.Zstd, err = smallest(ctx, parts, packers); err != nil {
			return size, err
		}
	} else {
		size.Bytes = total(parts)
	}
	return size, w.check(p, parts)
}

// check reads parts back.
func (w peer) check(p pair, parts [][]byte) error {
	got := cloned(p.old)
	if err := w.read(parts, got); err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	if !equal(got, p.new) {
		return errors.New("what is read back is not the new state")
	}
	return nil
}

func total(parts [][]byte) (n uint64) {
	for _, b := range parts {
		n += uint64(len(b))
	}
	return n
}

func cloned(m *delta.Memory) *delta.Memory {
	c := delta.NewMemory(m.Schema())
	for i := range m.Schema().Tensors() {
		copy(c.Tensor(i), m.Tensor(i))
	}
	return c
}
