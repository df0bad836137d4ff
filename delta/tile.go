package delta

import "iter"

const (
	// BlockWords is the length of a block and of a tile in words. A block is the unit of digests, a tile the unit
	// of coding; they coincide here, so that both ends hash what they hold in hand anyway.
	BlockWords = 256 << 10
	// frameBytes bounds the dense bytes of a frame, a run of tiles that are coded together. It bounds memory: a
	// worker holds one frame of the old state, one of the new and the code between them.
	frameBytes = 4 << 20
)

// tile is a run of at most BlockWords consecutive words of one tensor.
type tile struct {
	tensor int
	off    int64 // bytes from the tensor's begin
	size   int   // bytes
	coding coding
}

func (t tile) words() int { return t.size / t.coding.width }

// frames yields the tiles of a state in order, in runs of at most frameBytes. The runs follow from the schema
// alone, so that no position is ever sent.
func frames(s *Schema) iter.Seq[[]tile] {
	return func(yield func([]tile) bool) {
		var run []tile
		size := 0
		for t := range tiles(s) {
			if len(run) > 0 && size+t.size > frameBytes {
				if !yield(run) {
					return
				}
				run, size = nil, 0
			}
			run, size = append(run, t), size+t.size
		}
		if len(run) > 0 {
			yield(run)
		}
	}
}

func tiles(s *Schema) iter.Seq[tile] {
	return func(yield func(tile) bool) {
		for i, t := range s.Tensors() {
			c := codingOf(t.DType)
			most := int64(BlockWords * c.width)
			for off := int64(0); off < t.Size; off += most {
				if !yield(tile{tensor: i, off: off, size: int(min(most, t.Size-off)), coding: c}) {
					return
				}
			}
		}
	}
}

// frameBuffer holds the dense bytes of one frame, every tile at a multiple of 8 bytes so that its words can be
// looked at in place.
type frameBuffer struct {
	words []uint64
	tiles [][]byte
}

// lay divides the buffer among the tiles of a frame and returns their places, which hold old contents.
func (b *frameBuffer) lay(run []tile) [][]byte {
	n := 0
	for _, t := range run {
		n += (t.size + 7) / 8
	}
	if cap(b.words) < n {
		b.words = make([]uint64, n)
	}
	all := bytesOf(b.words[:n])
	b.tiles = b.tiles[:0]
	for _, t := range run {
		b.tiles = append(b.tiles, all[:t.size:t.size])
		all = all[(t.size+7)/8*8:]
	}
	return b.tiles
}

// load reads the tiles of a frame from s.
func (b *frameBuffer) load(s State, run []tile) ([][]byte, error) {
	places := b.lay(run)
	for i, t := range run {
		if err := s.ReadAt(t.tensor, places[i], t.off); err != nil {
			return nil, err
		}
	}
	return places, nil
}

// store writes the tiles of a frame to s.
func store(s Sink, run []tile, data [][]byte) error {
	for i, t := range run {
		if err := s.WriteAt(t.tensor, data[i], t.off); err != nil {
			return err
		}
	}
	return nil
}
