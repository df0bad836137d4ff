package delta

import "fmt"

// Keep is for sinks that overwrite the only copy of something. It is given consecutive blocks, from the one of that
// number on, as they are going to be, and returns before the first byte of them is written; done is called when all are
// there. So whoever ends in between finds them where Keep put them, and [PutBlocks] writes them again: no block stays
// half old and half new. It is called by several goroutines at a time. A nil Keep keeps nothing.
type Keep func(block int, tiles [][]byte) (done func(), err error)

// MaxKept bounds the bytes of what a Keep is given at a time.
const MaxKept = frameBytes

// around calls write when the tiles are kept. After a failed write they stay so.
func (k Keep) around(block int, tiles [][]byte, write func() error) error {
	if k == nil {
		return write()
	}
	done, err := k(block, tiles)
	if err != nil {
		return err
	}
	if err := write(); err != nil {
		return err
	}
	done()
	return nil
}

// PutBlocks writes consecutive blocks as a Keep was given them, one behind the other in data. It refuses, before it
// writes anything, what is not just some blocks of one frame.
func PutBlocks(schema *Schema, block int, data []byte, sink Sink) error {
	for f := range frames(schema) {
		if block < f.block || block >= f.end() {
			continue
		}
		tiles := f.tiles[block-f.block:]
		n, size := 0, 0
		for n < len(tiles) && size < len(data) {
			size += tiles[n].size
			n++
		}
		if size != len(data) {
			break
		}
		for _, t := range tiles[:n] {
			if err := storeTile(sink, t, data[:t.size]); err != nil {
				return err
			}
			data = data[t.size:]
		}
		return nil
	}
	return fmt.Errorf("put blocks: %d bytes from block %d on are not blocks of one frame", len(data), block)
}
