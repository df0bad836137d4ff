package delta

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// The code of a frame is sorted into sections of like bytes, so that each finds the entropy code that suits it:
// headers, then gaps by class, then steps by class, then byte planes of raw tiles. A section is
//
//	uvarint(len<<1 | squeezed) len bytes
//
// and squeezed ones are a zstd frame that states its content size.
const (
	sectionHead  = 0
	sectionGaps  = 1
	sectionSteps = sectionGaps + classCount
	sectionRaw   = sectionSteps + classCount
	sectionCount = sectionRaw + 8
)

type sections [sectionCount][]byte

func (s *sections) reset() {
	for i := range s {
		s[i] = s[i][:0]
	}
}

// squeezer packs sections; it belongs to one worker.
type squeezer struct {
	enc *zstd.Encoder
	buf []byte
}

func newSqueezer() *squeezer {
	// Without matches zstd leaves literals alone unless told otherwise, and our sections have few matches.
	return &squeezer{enc: must(zstd.NewWriter(nil,
		zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithAllLitEntropyCompression(true),
		zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true)))}
}

func (q *squeezer) append(dst []byte, s *sections) []byte {
	for _, section := range s {
		q.buf = q.enc.EncodeAll(section, q.buf[:0])
		if len(q.buf) < len(section) {
			dst = binary.AppendUvarint(dst, uint64(len(q.buf))<<1|1)
			dst = append(dst, q.buf...)
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(len(section))<<1)
		dst = append(dst, section...)
	}
	return dst
}

// unsqueezer unpacks sections; it belongs to one worker.
type unsqueezer struct{ dec *zstd.Decoder }

func newUnsqueezer() *unsqueezer {
	return &unsqueezer{dec: must(zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxWindow(2*frameBytes)))}
}

// unpack splits a frame into sections that hold at most budget bytes together. They are valid until the next call.
func (u *unsqueezer) unpack(s *sections, frame []byte, budget int) error {
	c := cursor{frame}
	for i := range s {
		v, err := c.uvarint()
		if err != nil {
			return err
		}
		if v>>1 > uint64(len(c.rest)) {
			return errSection
		}
		b, _ := c.take(int(v >> 1))
		if v&1 != 0 {
			if b, err = u.unsqueeze(s[i][:0], b, budget); err != nil {
				return fmt.Errorf("section %d: %w", i, err)
			}
			s[i] = b
		} else {
			s[i] = append(s[i][:0], b...)
		}
		if budget -= len(b); budget < 0 {
			return fmt.Errorf("section %d: more code than the frame has room for", i)
		}
	}
	if len(c.rest) > 0 {
		return fmt.Errorf("%d bytes behind the last section", len(c.rest))
	}
	return nil
}

// unsqueeze believes the content size that b states only up to the budget, and allocates no more.
func (u *unsqueezer) unsqueeze(dst, b []byte, budget int) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(b); err != nil {
		return nil, err
	}
	if !h.HasFCS || h.FrameContentSize > uint64(budget) {
		return nil, errors.New("more code than the frame has room for")
	}
	if n := int(h.FrameContentSize); cap(dst) < n {
		dst = make([]byte, 0, n)
	}
	return u.dec.DecodeAll(b, dst)
}
