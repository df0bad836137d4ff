package delta

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
)

// Undo takes a state whose change in place was cut short back to what it was before. Stream is as much as there is of the
// stream that led back, holds are the digests of the state as it lies there, and was those of the state before. Frames
// that are not in the stream were not touched. A block is written only if it has the digest that was promises: those
// that it could not make it returns and leaves alone.
func Undo(ctx context.Context, stream io.Reader, state State, holds, was *Digests, sink Sink, keep Keep) (left []int, err error) {
	schema := state.Schema()
	if holds.Len() != schema.Blocks() || was.Len() != schema.Blocks() {
		return nil, fmt.Errorf("undo: digests of %d and %d blocks, the state has %d", holds.Len(), was.Len(), schema.Blocks())
	}
	in := &streamReader{in: bufio.NewReaderSize(stream, 64<<10), schema: schema}
	first := rebuilder{base: state, sink: sink, keep: keep, promised: newOutboard(schema, was, make([]uint32, frameStarts(schema)[len(schema.groups)]))}
	wanted := was.Diff(holds)
	left, err = first.run(ctx, func(yield func(rebuildJob) bool) error {
		// Where the stream is cut off or damaged it ends: what comes behind is left.
		_ = in.run(func(f frame, code []byte) bool {
			n, _ := slices.BinarySearch(wanted, f.end())
			mine := wanted[:n]
			wanted = wanted[n:]
			return len(mine) == 0 || yield(rebuildJob{frame: f, codes: [][]byte{code}, wanted: mine})
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("undo: %w", err)
	}
	return append(left, wanted...), nil
}
