package delta

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ipfs/go-cid"
)

// ErrWrongTarget says that a stream, applied to a state, gave another state than its manifest promises: the base was
// another one, or somebody changed it meanwhile.
var ErrWrongTarget = errors.New("the result is not the promised state")

// WriteEdge codes the edge from old (nil: an anchor) to new and hands its chunks to put, in order. Spool is an empty
// file that takes the coded stream until its length is known, since the size of the chunks follows from it.
func WriteEdge(ctx context.Context, spool io.ReadWriteSeeker, old, new State, opt EncodeOptions,
	put func(id cid.Cid, chunk []byte) error,
) (*Manifest, error) {
	sum, err := Encode(ctx, spool, old, new, opt)
	if err != nil {
		return nil, err
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("rewind spool: %w", err)
	}
	m := &Manifest{
		Schema: new.Schema().ID(), Base: sum.Base, Target: sum.Target,
		Elements: sum.Elements, Changed: sum.Changed, Dense: sum.Dense, Coded: sum.Coded,
		ChunkSize: ChunkSize(sum.Coded),
	}
	if err := cut(ctx, spool, m, put); err != nil {
		return nil, err
	}
	return m, m.Validate()
}

func cut(ctx context.Context, r io.Reader, m *Manifest, put func(id cid.Cid, chunk []byte) error) error {
	for left := m.Coded; left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		chunk := make([]byte, min(left, uint64(m.ChunkSize)))
		if _, err := io.ReadFull(r, chunk); err != nil {
			return fmt.Errorf("read spool: %w", err)
		}
		id := Sum(chunk)
		if err := put(id, chunk); err != nil {
			return fmt.Errorf("keep chunk %d: %w", len(m.Chunks), err)
		}
		m.Chunks = append(m.Chunks, id)
		left -= uint64(len(chunk))
	}
	return nil
}

// ApplyEdge decodes the edge that m describes from old to sink and checks that the result is m's target. Get returns
// chunk i; what it returns is checked before it is used. See Decode for what sink may be.
func ApplyEdge(ctx context.Context, m *Manifest, get func(i int) ([]byte, error), schema *Schema, old State, sink Sink,
	progress func(dense uint64),
) error {
	if !schema.ID().Equals(m.Schema) {
		return fmt.Errorf("apply: schema %s given, manifest asks for %s", schema.ID(), m.Schema)
	}
	if m.Base.IsZero() {
		old = nil
	} else if old == nil {
		return errors.New("apply: a delta needs the state it starts from")
	}
	root, err := Decode(ctx, &chunkReader{manifest: m, get: get}, schema, old, sink, progress)
	if err != nil {
		return err
	}
	if root != m.Target {
		return fmt.Errorf("apply: root %s, promised %s: %w", root.Short(), m.Target.Short(), ErrWrongTarget)
	}
	return nil
}

// chunkReader reads the stream of an edge out of its chunks. No byte leaves it unchecked.
type chunkReader struct {
	manifest *Manifest
	get      func(i int) ([]byte, error)
	next     int
	rest     []byte
}

func (r *chunkReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.next == len(r.manifest.Chunks) {
			return 0, io.EOF
		}
		if err := r.load(); err != nil {
			return 0, fmt.Errorf("chunk %d of %d: %w", r.next, len(r.manifest.Chunks), err)
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *chunkReader) load() error {
	chunk, err := r.get(r.next)
	if err != nil {
		return err
	}
	if len(chunk) != r.manifest.ChunkLen(r.next) {
		return fmt.Errorf("%d bytes, want %d: %w", len(chunk), r.manifest.ChunkLen(r.next), ErrMismatch)
	}
	if err := Check(r.manifest.Chunks[r.next], chunk); err != nil {
		return err
	}
	r.rest = chunk
	r.next++
	return nil
}
