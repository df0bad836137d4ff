package delta

import (
	"errors"
	"fmt"
)

// rungReader finds the code of frames in the chunks of an edge. It is asked for all frames in order.
type rungReader struct {
	Rung
	group int
	nth   int    // frames of the group that were found
	off   uint64 // where the next of them begins in its stream
	last  int    // number of the chunk that is kept
	kept  []byte
}

func newRungReader(r Rung) *rungReader { return &rungReader{Rung: r, group: -1} }

// stretch is where the code of a frame lies in the stream of its group.
type stretch struct {
	off  uint64
	size uint32
}

// find returns where the code of the next frame lies. Of a group that the outboard was not read for it knows nothing.
func (r *rungReader) find(f frame) stretch {
	if f.group != r.group {
		r.group, r.nth, r.off = f.group, 0, uint64(len(streamHead))
	}
	p := r.Outboard.parts[f.group]
	if !p.read {
		return stretch{}
	}
	size := p.frames[r.nth]
	whole := framedBytes(size)
	at := stretch{r.off + whole - uint64(size), size}
	r.nth, r.off = r.nth+1, r.off+whole
	return at
}

// chunks returns the first and the last chunk that a stretch of a group's stream lies in. For a frame in which nothing
// changed the last comes before the first.
func (r *rungReader) chunks(group int, at stretch) (first, last int, err error) {
	if !r.Outboard.parts[group].read {
		return 0, 0, fmt.Errorf("group %q: its outboard was not read", r.Outboard.schema.groups[group])
	}
	parts := r.Manifest.cutFrom()
	if group >= len(parts) || at.off+uint64(at.size) > parts[group].size {
		return 0, 0, errors.New("the outboard is of another edge")
	}
	size := uint64(r.Manifest.ChunkSize)
	if at.size == 0 {
		return 0, -1, nil
	}
	return parts[group].first + int(at.off/size), parts[group].first + int((at.off+uint64(at.size)-1)/size), nil
}

// read returns the code of a frame.
func (r *rungReader) read(f frame, at stretch) ([]byte, error) {
	first, last, err := r.chunks(f.group, at)
	if err != nil {
		return nil, err
	}
	if uint64(at.size) > uint64(codeBound(f)) {
		return nil, fmt.Errorf("%d bytes of code, at most %d", at.size, codeBound(f))
	}
	code := make([]byte, 0, at.size+bitSlack)
	skip := at.off % uint64(r.Manifest.ChunkSize)
	for i := first; i <= last; i++ {
		chunk, err := r.chunk(i)
		if err != nil {
			return nil, err
		}
		chunk = chunk[skip:]
		code = append(code, chunk[:min(len(chunk), int(at.size)-len(code))]...)
		skip = 0
	}
	return code, nil
}

// chunk returns chunk i. The next frame often begins in the one where the last ended.
func (r *rungReader) chunk(i int) ([]byte, error) {
	if r.kept != nil && r.last == i {
		return r.kept, nil
	}
	b, err := checkedChunk(r.Manifest, r.Chunk, i)
	if err != nil {
		return nil, err
	}
	r.last, r.kept = i, b
	return b, nil
}
