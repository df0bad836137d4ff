package delta

import (
	"fmt"
	"iter"
)

const (
	// BlockWords is the length of a block and of a tile in words. A block is the unit of digests, a tile the unit
	// of coding; they coincide here, so that both ends hash what they hold in hand anyway.
	BlockWords = 256 << 10
	// frameBytes and frameTiles bound a frame, a run of tiles that are coded together. They bound memory: a
	// worker holds one frame of the old state, one of the new and the code between them.
	frameBytes = 4 << 20
	frameTiles = 4 << 10
)

// tile is a run of at most BlockWords consecutive words of one piece.
type tile struct {
	tensor int
	off    int64 // bytes from the begin of the tensor, or of the piece where box is set
	size   int   // bytes
	coding coding
	box    *box // where the bytes of a piece lie that is not one run of its tensor
}

func (t tile) words() int { return t.size / t.coding.width }

// frame is a run of tiles of one group that are coded together. Frames follow from the schema alone, so that no
// position is ever sent.
type frame struct {
	number int // among all frames
	group  int
	block  int // number of the block that the first tile is
	tiles  []tile
}

func (f frame) end() int { return f.block + len(f.tiles) }

func (f frame) dense() uint64 {
	var n uint64
	for _, t := range f.tiles {
		n += uint64(t.size)
	}
	return n
}

// named says in which frame an error is, and where in the state that lies: which tiles, from which tensor on.
func (f frame) named(s *Schema, err error) error {
	first := f.tiles[0]
	return fmt.Errorf("frame %d (tiles %d to %d, from byte %d of tensor %q on): %w",
		f.number, f.block, f.end()-1, first.off, s.tensors[first.tensor].Name, err)
}

// frames yields the frames of a state in the order of the stream.
func frames(s *Schema) iter.Seq[frame] {
	return func(yield func(frame) bool) {
		var f frame
		size := 0
		for group, t := range tiles(s) {
			if len(f.tiles) > 0 && (group != f.group || size+t.size > frameBytes || len(f.tiles) == frameTiles) {
				if !yield(f) {
					return
				}
				f, size = frame{number: f.number + 1, block: f.end()}, 0
			}
			f.group = group
			f.tiles, size = append(f.tiles, t), size+t.size
		}
		if len(f.tiles) > 0 {
			yield(f)
		}
	}
}

// tiles yields the tiles of a state, each with its group, in the order of the stream. Tile and block of one number
// are the same.
func tiles(s *Schema) iter.Seq2[int, tile] {
	return func(yield func(int, tile) bool) {
		for _, p := range s.pieces {
			c := codingOf(s.tensors[p.Tensor].DType)
			t := tile{tensor: p.Tensor, coding: c, box: p.box}
			first := int64(0)
			if p.box != nil && len(p.box.outer) == 0 {
				t.box, first = nil, p.box.first
			}
			most := int64(BlockWords * c.width)
			for off := int64(0); off < p.size; off += most {
				t.off, t.size = first+off, int(min(most, p.size-off))
				if !yield(p.Group, t) {
					return
				}
			}
		}
	}
}

// frameBuffer holds the dense bytes of one frame, every tile at a multiple of 8 bytes so that its words can be
// looked at in place. What lies in memory is not copied.
type frameBuffer struct {
	words  []uint64
	tiles  [][]byte
	span   []byte // scratch for strided tiles
	narrow bool   // read no byte between the runs of a piece
	one    [1]tile
}

// lender is a State or a Sink that lies in memory.
type lender interface {
	// lend returns bytes of a tensor where they lie.
	lend(tensor int, off int64, size int) []byte
}

// lay finds places for the tiles of a frame, which hold old contents: those that l lends, unless it is nil, and of the
// others in the buffer.
func (b *frameBuffer) lay(f frame, l lender) [][]byte {
	n := 0
	for _, t := range f.tiles {
		if l == nil || t.box != nil {
			n += (t.size + 7) / 8
		}
	}
	if cap(b.words) < n {
		b.words = make([]uint64, n)
	}
	all := bytesOf(b.words[:n])
	b.tiles = b.tiles[:0]
	for _, t := range f.tiles {
		if l != nil && t.box == nil {
			b.tiles = append(b.tiles, l.lend(t.tensor, t.off, t.size))
			continue
		}
		b.tiles = append(b.tiles, all[:t.size:t.size])
		all = all[(t.size+7)/8*8:]
	}
	return b.tiles
}

// load reads the tiles of a frame from s.
func (b *frameBuffer) load(s State, f frame) ([][]byte, error) {
	l, _ := s.(lender)
	places := b.lay(f, l)
	for i, t := range f.tiles {
		if l != nil && t.box == nil {
			continue
		}
		if err := b.loadTile(s, t, places[i]); err != nil {
			return nil, err
		}
	}
	return places, nil
}

// loadOne reads a single tile.
func (b *frameBuffer) loadOne(s State, t tile) ([]byte, error) {
	b.one[0] = t
	places, err := b.load(s, frame{tiles: b.one[:]})
	if err != nil {
		return nil, err
	}
	return places[0], nil
}

// layOne finds a place for a single tile.
func (b *frameBuffer) layOne(t tile, l lender) []byte {
	b.one[0] = t
	return b.lay(frame{tiles: b.one[:]}, l)[0]
}

func (b *frameBuffer) loadTile(s State, t tile, p []byte) error {
	if t.box == nil {
		return s.ReadAt(t.tensor, p, t.off)
	}
	if b.span == nil && !b.narrow {
		b.span = make([]byte, spanBytes)
	}
	return t.box.gather(s, t.tensor, p, t.off, b.span)
}

// store writes the tiles of a frame to s.
func store(s Sink, f frame, data [][]byte) error {
	for i, t := range f.tiles {
		if err := storeTile(s, t, data[i]); err != nil {
			return err
		}
	}
	return nil
}

func storeTile(s Sink, t tile, p []byte) error {
	if t.box == nil {
		return s.WriteAt(t.tensor, p, t.off)
	}
	return t.box.scatter(s, t.tensor, p, t.off)
}
