package delta

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
)

// frameJob is a frame as it stands in the stream.
type frameJob struct {
	frame
	code []byte
	turn turn // only when a reverse is written along
}

// headBound bounds the head of a frame: the modes, and the tables of every coding.
func headBound(f frame) int { return 5*len(f.tiles) + 16*(3+classCount*(6+maxStepSymbols)) + 8*3*256 }

// codeBound bounds the code of a frame: what is longer than the dense bytes is not coded so. It bounds what a
// stream can make us allocate.
func codeBound(f frame) int { return int(f.dense())*4 + headBound(f) }

// streamReader takes the streams of an edge apart and counts them.
type streamReader struct {
	in     *bufio.Reader
	schema *Schema
	groups []uint64 // bytes of each stream
	frames []uint32 // bytes of code of each frame
}

// run asks for every frame that the schema implies and for nothing behind them.
func (r *streamReader) run(yield func(frame, []byte) bool) error {
	for f := range frames(r.schema) {
		if err := r.open(f.group); err != nil {
			return err
		}
		code, err := r.frame(codeBound(f))
		if err != nil {
			return f.named(r.schema, truncated(err))
		}
		if !yield(f, code) {
			return nil
		}
	}
	if err := r.open(len(r.schema.groups) - 1); err != nil {
		return err
	}
	if _, err := r.in.ReadByte(); err == nil {
		return errors.New("bytes behind the last frame")
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// open reads the begins of all streams up to that of group g.
func (r *streamReader) open(g int) error {
	for len(r.groups) <= g {
		head := make([]byte, len(streamHead))
		if _, err := io.ReadFull(r.in, head); err != nil {
			return fmt.Errorf("stream header: %w", truncated(err))
		}
		if err := checkMagic(string(head[:len(streamMagic)])); err != nil {
			return err
		}
		r.groups = append(r.groups, uint64(len(head)))
	}
	return nil
}

func checkMagic(magic string) error {
	const name = len(streamMagic) - 1 // the version follows
	switch {
	case magic == streamMagic:
		return nil
	case magic[:name] == streamMagic[:name]:
		return fmt.Errorf("stream header: format %d, this build reads %d; upgrade the older sparsecast", magic[name], streamMagic[name])
	}
	return fmt.Errorf("stream header: %q is no sparsecast stream", magic)
}

// frame reads the code of the next frame.
func (r *streamReader) frame(limit int) ([]byte, error) {
	size, n, err := readLength(r.in, limit)
	if err != nil {
		return nil, err
	}
	code := slices.Grow(takeBuffer(), size+bitSlack)[:size] // bitSlack for who reads bits
	_, err = io.ReadFull(r.in, code)
	r.groups[len(r.groups)-1] += uint64(n + size)
	r.frames = append(r.frames, uint32(size))
	return code, err
}

// readLength reads a length of at most limit in its shortest form, and says how many bytes that took.
func readLength(in io.ByteReader, limit int) (size, n int, err error) {
	for shift := 0; ; shift += 7 {
		b, err := in.ReadByte()
		if err != nil {
			return 0, n, err
		}
		n++
		size |= int(b&0x7f) << shift
		if size > limit || n > 5 {
			return 0, n, fmt.Errorf("more than %d bytes of code", limit)
		}
		if b < 0x80 {
			if b == 0 && n > 1 {
				return 0, n, errors.New("length not in its shortest form")
			}
			return size, n, nil
		}
	}
}

// truncated names an early end as such.
func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the stream ends early")
	}
	return err
}
