package node

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/node/files"
	"github.com/zeebo/xxh3"
)

// A process may end in the middle of a write, and leave a block of the only slot half old and half new, which no code
// leads on from. So every frame is written twice: to a file first, where it stays until it is in the slot. The file is
// small, since only what the cores have in hand is there, each in a place that is used again and again.
//
// Nothing waits for the disk. What ends a process leaves the page cache alone, and so the order of the writes. A loss of
// power does not: both places may be torn then, and what was kept before it is not believed.

// inflightFile names the blocks that are being written.
const inflightFile = "in_flight"

// A record is xxh3-128 of what follows and of whose it is, 16 | number of the first block, 8 | length, 8 | blocks. It
// lies at a multiple of placeSize.
const (
	recordHead = 32
	placeSize  = recordHead + delta.MaxKept
	maxPlaces  = 64 // many more than frames are in hand at a time
)

// inflight keeps what is being written into a slot.
type inflight struct {
	dir   *files.Dir
	file  files.File
	whose []byte // the change, and the boot, that the records are of

	mu    sync.Mutex
	free  []int // places
	taken int   // places that were ever used
}

func whoseRecords(fsys files.FS, from, to delta.Root) []byte {
	return append(append(from[:], to[:]...), fsys.BootID()...)
}

// createInflight begins anew, without records.
func createInflight(d *files.Dir, from, to delta.Root) (*inflight, error) {
	if err := d.Remove(inflightFile); err != nil {
		return nil, err
	}
	f, err := d.FS().OpenFile(d.Path(inflightFile), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, d.Explain(err)
	}
	return &inflight{dir: d, file: f, whose: whoseRecords(d.FS(), from, to)}, nil
}

func (w *inflight) close() error { return w.file.Close() }

// keep is a delta.Keep. The head comes last: without it there is no record, and nothing is overwritten yet.
func (w *inflight) keep(block int, tiles [][]byte) (done func(), err error) {
	place := w.take()
	at := int64(place) * placeSize
	head := binary.LittleEndian.AppendUint64(make([]byte, 16, recordHead), uint64(block))
	size := 0
	for _, t := range tiles {
		if _, err := w.file.WriteAt(t, at+recordHead+int64(size)); err != nil {
			return nil, w.dir.Explain(err)
		}
		size += len(t)
	}
	head = binary.LittleEndian.AppendUint64(head, uint64(size))
	sum := w.sum(head, tiles...)
	copy(head, sum[:])
	if _, err := w.file.WriteAt(head, at); err != nil {
		return nil, w.dir.Explain(err)
	}
	return func() { w.give(place) }, nil
}

func (w *inflight) sum(head []byte, data ...[]byte) [16]byte {
	h := xxh3.New()
	h.Write(w.whose)
	h.Write(head[16:])
	for _, d := range data {
		h.Write(d)
	}
	return h.Sum128().Bytes()
}

func (w *inflight) take() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.free); n > 0 {
		place := w.free[n-1]
		w.free = w.free[:n-1]
		return place
	}
	w.taken++
	return w.taken - 1
}

func (w *inflight) give(place int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.free = append(w.free, place)
}

// replay writes what is kept into the slot once more. Records of frames that were whole long ago are among them: each
// makes its frame wholly what it was to become, or had been, and nothing else is asked for.
func (w *inflight) replay(schema *delta.Schema, sink delta.Sink) error {
	data := make([]byte, delta.MaxKept)
	for place := range int64(maxPlaces) {
		head := make([]byte, recordHead)
		if _, err := io.ReadFull(io.NewSectionReader(w.file, place*placeSize, recordHead), head); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			return err
		}
		block, size := binary.LittleEndian.Uint64(head[16:]), binary.LittleEndian.Uint64(head[24:])
		if size > delta.MaxKept || block > uint64(schema.Blocks()) {
			continue
		}
		body := data[:size]
		if _, err := io.ReadFull(io.NewSectionReader(w.file, place*placeSize+recordHead, int64(size)), body); err != nil {
			continue // cut off before it was a record
		}
		if sum := w.sum(head, body); string(sum[:]) != string(head[:16]) {
			continue
		}
		if err := delta.PutBlocks(schema, int(block), body, sink); err != nil {
			return err
		}
	}
	return nil
}

// unchangedYet marks a slot that was to be changed in place, or was taken back, and holds what it held before.
func (s *slots) unchangedYet(sl slot, f survey) error {
	c, err := s.read(sl)
	if err != nil {
		return err
	}
	defer c.Close()
	s.keepDigests(sl.name, f.digests, f.schema)
	return s.mark(sl.name, f.root, c)
}

// replay makes whole what a change in place that was cut short left half-written in a slot.
func (s *slots) replay(sl slot) error {
	m, err := s.readMarker(sl.name)
	if err != nil || m.From.IsZero() || s.dir.FS().BootID() == "" {
		return nil
	}
	f, err := s.dir.FS().OpenFile(s.dir.Path(inflightFile), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return s.dir.Explain(err)
	}
	w := &inflight{dir: s.dir, file: f, whose: whoseRecords(s.dir.FS(), m.From, m.Root)}
	defer w.close()
	p, err := s.openPatches(sl)
	if err != nil {
		return err
	}
	defer p.Close()
	return s.explain(w.replay(p.Schema(), p))
}
