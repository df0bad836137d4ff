package delta

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Rung is one edge of a path that blocks are rebuilt along.
type Rung struct {
	Manifest *Manifest
	Outboard *Outboard                   // read at least for the groups that the blocks are in
	Chunk    func(i int) ([]byte, error) // returns chunk i, which is checked before it is used
}

// ChunksOf returns the numbers of the chunks that the code of these blocks lies in, in order. The outboard must have
// been read for the groups that they are in.
func ChunksOf(m *Manifest, o *Outboard, blocks []int) ([]int, error) {
	var chunks []int
	r := newRungReader(Rung{Manifest: m, Outboard: o})
	err := framesOf(o.schema, blocks, func(f frame, wanted []int) error {
		at := r.find(f)
		if len(wanted) == 0 {
			return nil
		}
		first, last, err := r.chunks(f.group, at)
		for i := first; err == nil && i <= last; i++ {
			if len(chunks) == 0 || chunks[len(chunks)-1] < i {
				chunks = append(chunks, i)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("chunks of blocks: %w", err)
	}
	return chunks, nil
}

// framesOf calls visit for every frame, with those of the blocks that lie in it.
func framesOf(s *Schema, blocks []int, visit func(f frame, wanted []int) error) error {
	wanted := slices.Compact(slices.Sorted(slices.Values(blocks)))
	if n := len(wanted); n > 0 && (wanted[0] < 0 || wanted[n-1] >= s.Blocks()) {
		return fmt.Errorf("blocks %d to %d wanted, but there are %d", wanted[0], wanted[n-1], s.Blocks())
	}
	for f := range frames(s) {
		n, _ := slices.BinarySearch(wanted, f.end())
		if err := visit(f, wanted[:n]); err != nil {
			return err
		}
		wanted = wanted[n:]
	}
	return nil
}

// Rebuild makes the given blocks of the state that path leads to and writes them to sink, and nothing else. Base is
// the state that path starts from, nil for nothing. Only the frames that the blocks lie in are read, of base and of
// every edge, and are taken through all edges in memory; a block is written only if it has the digest that the
// outboard of the last edge promises.
func Rebuild(ctx context.Context, schema *Schema, blocks []int, base State, path []Rung, sink Sink) error {
	left, err := Salvage(ctx, schema, blocks, base, path, sink, nil)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("rebuild: block %d: %w", left[0], ErrWrongTarget)
	}
	return err
}

// Salvage is Rebuild from a base that may hold something else in places, as a slot does whose update was cut short. It
// returns the blocks that it could not make of that, and has left alone. Keep, if not nil, sees what is written before.
func Salvage(ctx context.Context, schema *Schema, blocks []int, base State, path []Rung, sink Sink, keep Keep) (left []int, err error) {
	if err := checkPath(schema, base, path); err != nil {
		return nil, fmt.Errorf("rebuild: %w", err)
	}
	first := rebuilder{base: base, sink: sink, keep: keep, promised: path[len(path)-1].Outboard}
	left, err = first.run(ctx, func(yield func(rebuildJob) bool) error { return readRungs(schema, blocks, path, yield) })
	if err != nil {
		return nil, fmt.Errorf("rebuild: %w", err)
	}
	return left, nil
}

// run rebuilds by as many workers as there are cores, each a copy of w, and returns the blocks that are left.
func (w rebuilder) run(ctx context.Context, produce func(yield func(rebuildJob) bool) error) (left []int, err error) {
	err = inOrder(ctx, wholeWorkers, produce,
		func() func(context.Context, rebuildJob) ([]int, error) {
			own := w
			own.reader = newCodeReader()
			return func(_ context.Context, j rebuildJob) ([]int, error) { return own.rebuild(j) }
		},
		func(more []int) error {
			left = append(left, more...)
			return nil
		})
	return left, err
}

// checkPath makes sure that path leads from base, in one schema, without a gap.
func checkPath(schema *Schema, base State, path []Rung) error {
	if len(path) == 0 {
		return errors.New("no edge leads to the blocks: the digests to check them by are missing")
	}
	if base != nil && !base.Schema().ID().Equals(schema.ID()) {
		return errors.New("the base has another schema")
	}
	for i, r := range path {
		if r.Outboard == nil {
			return fmt.Errorf("edge %d comes without its outboard", i)
		}
		if !r.Manifest.Schema.Equals(schema.ID()) || !r.Outboard.schema.ID().Equals(schema.ID()) {
			return fmt.Errorf("edge %d has another schema", i)
		}
		switch {
		case i == 0 && r.Manifest.Base.IsZero() != (base == nil):
			return errors.New("the first edge and the base do not belong together")
		case i > 0 && r.Manifest.Base != path[i-1].Manifest.Target:
			return fmt.Errorf("edge %d does not start where the one before it ends", i)
		}
	}
	return nil
}

// rebuildJob is a frame, its code in every edge, and which of its blocks are wanted.
type rebuildJob struct {
	frame
	codes  [][]byte
	wanted []int
}

// readRungs reads the code of all frames with wanted blocks.
func readRungs(schema *Schema, blocks []int, path []Rung, yield func(rebuildJob) bool) error {
	rungs := make([]*rungReader, len(path))
	for i, r := range path {
		rungs[i] = newRungReader(r)
	}
	err := framesOf(schema, blocks, func(f frame, wanted []int) error {
		j := rebuildJob{frame: f, wanted: wanted}
		for i, r := range rungs {
			at := r.find(f)
			if len(wanted) == 0 {
				continue
			}
			code, err := r.read(f, at)
			if err != nil {
				return fmt.Errorf("edge %d: %w", i, f.named(schema, err))
			}
			j.codes = append(j.codes, code)
		}
		if len(wanted) > 0 && !yield(j) {
			return errStopped
		}
		return nil
	})
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

// errStopped ends a walk early; it is not seen outside.
var errStopped = errors.New("stopped")

// rebuilder takes frames through all edges; it belongs to one worker.
type rebuilder struct {
	base     State
	sink     Sink
	keep     Keep
	promised *Outboard
	reader   *codeReader
	from, to frameBuffer
}

// rebuild writes the wanted blocks of a frame, and returns those that did not come out as promised.
func (w *rebuilder) rebuild(j rebuildJob) (left []int, err error) {
	var tiles [][]byte
	if w.base != nil {
		w.from.narrow = true // others may be writing what lies between the runs of a piece
		if tiles, err = w.from.load(w.base, j.frame); err != nil {
			return nil, err
		}
	}
	for _, code := range j.codes {
		next := w.to.lay(j.frame, nil)
		if w.reader.decode(j.frame, code, tiles, next) != nil {
			return j.wanted, nil // the code is checked: it belongs to another base than this
		}
		tiles = next
		w.from, w.to = w.to, w.from
	}
	return w.put(j, tiles)
}

// put writes what came out right, and returns the wanted blocks that did not.
func (w *rebuilder) put(j rebuildJob, tiles [][]byte) (left []int, err error) {
	first, _ := w.promised.schema.GroupBlocks(j.group)
	promised := w.promised.parts[j.group].blocks
	right := func(b int) bool { return digestBlock(tiles[b-j.block]) == promised[b-first] }
	b, last := j.wanted[0], j.wanted[len(j.wanted)-1]
	for b <= last && right(b) {
		b++
	}
	if b > last {
		return nil, w.store(j, tiles, j.wanted)
	}
	for _, b := range j.wanted {
		if !right(b) {
			left = append(left, b)
		} else if err := w.store(j, tiles, []int{b}); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// store writes blocks of a frame and keeps them, with those in between, as one: were some of them there and others not,
// the code of the frame would fit neither.
func (w *rebuilder) store(j rebuildJob, tiles [][]byte, blocks []int) error {
	first, last := blocks[0]-j.block, blocks[len(blocks)-1]-j.block
	return w.keep.around(blocks[0], tiles[first:last+1], func() error {
		for _, b := range blocks {
			if err := storeTile(w.sink, j.tiles[b-j.block], tiles[b-j.block]); err != nil {
				return err
			}
		}
		return nil
	})
}
