package delta

// tileSource is where a coder gets the tiles of a frame from. The old bytes are nil in an anchor.
type tileSource interface {
	// tile returns tile i, valid until the next call. It is called once for each, in order.
	tile(i int) (old, new []byte, err error)
	// sample returns some bytes of tile i, valid until the next call. The tile in hand stays as it is.
	sample(i, off, size int) (old, new []byte, err error)
}

// heldTiles is a frame in memory.
type heldTiles struct{ old, new [][]byte }

func (h heldTiles) tile(i int) (old, new []byte, err error) { return h.sample(i, 0, len(h.new[i])) }

func (h heldTiles) sample(i, off, size int) (old, new []byte, err error) {
	if h.old != nil {
		old = h.old[i][off : off+size]
	}
	return old, h.new[i][off : off+size], nil
}
