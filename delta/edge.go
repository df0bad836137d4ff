package delta

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ipfs/go-cid"
)

// ErrWrongTarget says that a stream, applied to a state, gave another state than its manifest promises: the base was
// another one, or somebody changed it meanwhile.
var ErrWrongTarget = errors.New("the result is not the promised state")

// WriteEdge codes the edge from old (nil: an anchor) to new and hands its blocks to put, as CutEdge does. Spool is an
// empty file that takes the streams until their length is known, since the size of the chunks follows from it.
func WriteEdge(ctx context.Context, spool io.ReadWriteSeeker, old, new State, opt EncodeOptions,
	put func(id cid.Cid, block []byte) error,
) (*Manifest, Summary, error) {
	if old != nil && len(opt.Sidecars) > 0 {
		return nil, Summary{}, errors.New("encode: files travel with anchors only")
	}
	sum, err := Encode(ctx, spool, old, new, opt)
	if err != nil {
		return nil, Summary{}, err
	}
	m, err := CutEdge(ctx, spool, new.Schema(), sum, opt.Sidecars, put)
	return m, sum, err
}

// CutEdge makes an edge of streams that an encoder has written to spool, from its begin: it hands their chunks to
// put, in order, then those of the sidecars, then the blocks of the outboard, and returns the manifest.
func CutEdge(ctx context.Context, spool io.ReadSeeker, schema *Schema, sum Summary, sidecars []Attachment,
	put func(id cid.Cid, block []byte) error,
) (*Manifest, error) {
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("rewind spool: %w", err)
	}
	sidecars = slices.Clone(sidecars)
	slices.SortFunc(sidecars, func(a, b Attachment) int { return strings.Compare(a.Name, b.Name) })
	m := &Manifest{
		Schema: schema.ID(), Base: sum.Base, Target: sum.Target,
		Elements: sum.Elements, Changed: sum.Changed, Dense: sum.Dense, Coded: sum.Coded,
	}
	if len(sum.Groups) > 1 {
		m.Groups = sum.Groups
	}
	for _, s := range sidecars {
		m.Sidecars = append(m.Sidecars, s.Sidecar)
	}
	m.ChunkSize = ChunkSize(m.Bytes())
	if _, err := m.validate(); err != nil {
		return nil, fmt.Errorf("edge: %w", err)
	}
	m.parts = m.cutFrom()
	if err := cut(ctx, m, spool, exactly(sidecars), put); err != nil {
		return nil, err
	}
	for _, b := range newOutboard(schema, sum.Digests, sum.Frames).blocks() {
		id := Sum(b)
		if err := put(id, b); err != nil {
			return nil, fmt.Errorf("keep outboard: %w", err)
		}
		m.Outboard = append(m.Outboard, id)
	}
	return m, m.Validate()
}

// cut reads the parts of an edge and hands out their chunks.
func cut(ctx context.Context, m *Manifest, streams, sidecars io.Reader, put func(id cid.Cid, chunk []byte) error) error {
	in := io.MultiReader(io.LimitReader(streams, int64(m.Coded)), sidecars)
	for _, p := range m.parts {
		for left := p.size; left > 0; {
			if err := ctx.Err(); err != nil {
				return err
			}
			chunk := make([]byte, min(left, uint64(m.ChunkSize)))
			if _, err := io.ReadFull(in, chunk); err != nil {
				return fmt.Errorf("read chunk %d: %w", len(m.Chunks), err)
			}
			id := Sum(chunk)
			if err := put(id, chunk); err != nil {
				return fmt.Errorf("keep chunk %d: %w", len(m.Chunks), err)
			}
			m.Chunks = append(m.Chunks, id)
			left -= uint64(len(chunk))
		}
	}
	// The last file may be longer than it said.
	if _, err := io.ReadFull(in, make([]byte, 1)); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// ApplyEdge decodes the edge that m describes from old to sink and checks that the result is m's target. Get returns
// chunk i; what it returns is checked before it is used. See Decode for what sink may be.
func ApplyEdge(ctx context.Context, m *Manifest, get func(i int) ([]byte, error), schema *Schema, old State, sink Sink,
	opt DecodeOptions,
) (Decoded, error) {
	if !schema.ID().Equals(m.Schema) {
		return Decoded{}, fmt.Errorf("apply: schema %s given, manifest asks for %s", schema.ID(), m.Schema)
	}
	if m.Base.IsZero() {
		old = nil
	} else if old == nil {
		return Decoded{}, errors.New("apply: a delta needs the state it starts from")
	}
	in := &chunkReader{manifest: m, get: get, end: m.streamChunks()}
	d, err := Decode(ctx, in, schema, old, sink, opt)
	if err != nil {
		return Decoded{}, err
	}
	if d.Root != m.Target {
		return Decoded{}, fmt.Errorf("apply: root %s, promised %s: %w", d.Root.Short(), m.Target.Short(), ErrWrongTarget)
	}
	if m.Groups != nil && !slices.Equal(m.Groups, d.Groups) {
		return Decoded{}, errors.New("apply: the groups are not as long as the manifest says")
	}
	return d, nil
}

// chunkReader reads what chunks hold, from chunk next up to end. No byte leaves it unchecked.
type chunkReader struct {
	manifest  *Manifest
	get       func(i int) ([]byte, error)
	next, end int
	rest      []byte
}

func (r *chunkReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.next == r.end {
			return 0, io.EOF
		}
		chunk, err := checkedChunk(r.manifest, r.get, r.next)
		if err != nil {
			return 0, err
		}
		r.rest = chunk
		r.next++
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// checkedChunk gets chunk i and makes sure that it is that.
func checkedChunk(m *Manifest, get func(i int) ([]byte, error), i int) ([]byte, error) {
	chunk, err := get(i)
	if err == nil && len(chunk) != m.ChunkLen(i) {
		err = fmt.Errorf("%d bytes, want %d: %w", len(chunk), m.ChunkLen(i), ErrMismatch)
	}
	if err == nil {
		err = Check(m.Chunks[i], chunk)
	}
	if err != nil {
		return nil, fmt.Errorf("chunk %d of %d: %w", i, len(m.Chunks), err)
	}
	return chunk, nil
}
