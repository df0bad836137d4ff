package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// halfWritten is the hint for files that look like a writer is still at work.
const halfWritten = "half-written? wait until the writer is done"

// padStep is how much of the end of a header is looked at in one go for padding, in bytes.
const padStep = 16 << 10

// stamp remembers what a file looked like when it was opened.
type stamp struct {
	disk Disk
	path string // as named, so that a replaced symlink is seen
	info fs.FileInfo
}

// weights is one open weight file.
type weights struct {
	stamp
	resolved string
	file     File
	buffer   int64 // where the byte buffer begins
}

// openRegular opens a regular file, following symlinks. It never waits for the other end of a pipe.
func openRegular(d Disk, path string) (File, stamp, error) {
	info, err := d.Stat(path)
	if err != nil {
		return nil, stamp{}, err
	}
	if !info.Mode().IsRegular() {
		return nil, stamp{}, fmt.Errorf("%s: not a regular file (%s)", path, info.Mode().Type())
	}
	f, err := d.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, stamp{}, err
	}
	info, err = f.Stat() // again: the name may have been given to another file in between
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file (%s)", path, info.Mode().Type())
	}
	if err != nil {
		return nil, stamp{}, errors.Join(err, f.Close())
	}
	return f, stamp{d, path, info}, nil
}

// changed reports whether another file, or other contents by the look of it, now has the name.
func (s stamp) changed() error {
	now, err := s.disk.Stat(s.path)
	if err != nil {
		return fmt.Errorf("changed since it was opened: %w; wait until the writer is done and open it again", err)
	}
	if !s.disk.SameFile(s.info, now) || s.info.Size() != now.Size() || !s.info.ModTime().Equal(now.ModTime()) {
		return fmt.Errorf("%s: changed since it was opened; wait until the writer is done and open it again", s.path)
	}
	return nil
}

// openWeights opens one weight file and reads its header.
func openWeights(d Disk, path string) (*weights, *header, error) {
	f, st, err := openRegular(d, path)
	if err != nil {
		return nil, nil, err
	}
	w := &weights{stamp: st, file: f}
	h, err := w.load()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return w, h, nil
}

// load resolves the path and reads the header.
func (w *weights) load() (_ *header, err error) {
	if w.resolved, err = w.disk.Resolve(w.path); err != nil {
		return nil, err
	}
	h, err := w.readHeader()
	if err != nil {
		return nil, err
	}
	return h, w.checkLength(h)
}

// readHeader reads and parses the header; its length is checked against the file before memory is taken.
func (w *weights) readHeader() (*header, error) {
	size := w.info.Size()
	if size < prefix+minHeader {
		return nil, fmt.Errorf("%d bytes cannot hold a header (%s)", size, halfWritten)
	}
	var length [prefix]byte
	if err := w.readFull(length[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n == 0 {
		return nil, fmt.Errorf("header: empty (%s)", halfWritten)
	}
	if n < minHeader || n > maxHeader {
		return nil, fmt.Errorf("header of %d bytes: want %d to %d; is this a safetensors file?", n, minHeader, maxHeader)
	}
	if int64(n) > size-prefix {
		return nil, fmt.Errorf("header of %d bytes in a file of %d (%s)", n, size, halfWritten)
	}
	w.buffer = prefix + int64(n)
	used, err := w.unpadded(int64(n))
	if err != nil {
		return nil, err
	}
	text := make([]byte, used)
	if err := w.readFull(text, prefix); err != nil {
		return nil, err
	}
	return parseHeader(text)
}

// unpadded returns how much of a header of n bytes is left without the white space at its end, which takes no memory.
func (w *weights) unpadded(n int64) (int64, error) {
	piece := make([]byte, min(n, padStep))
	for n > 0 {
		p := piece[:min(n, padStep)]
		if err := w.readFull(p, prefix+n-int64(len(p))); err != nil {
			return 0, err
		}
		kept := len(bytes.TrimRight(p, space))
		n -= int64(len(p) - kept)
		if kept > 0 {
			break
		}
	}
	return n, nil
}

// checkLength verifies that the tensors end where the file does.
func (w *weights) checkLength(h *header) error {
	have := w.info.Size() - w.buffer
	switch want := int64(h.total); {
	case have < want:
		return fmt.Errorf("%d bytes of data, the header promises %d (%s)", have, want, halfWritten)
	case have > want:
		return fmt.Errorf("%d bytes after the last tensor that no tensor names", have-want)
	}
	return nil
}

// readFull fills p from the file. Positioned reads instead of a map: a file that shrinks is an error, not a SIGBUS.
func (w *weights) readFull(p []byte, off int64) error {
	_, err := w.file.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("truncated while reading (%s): %w", halfWritten, io.ErrUnexpectedEOF)
	}
	return err
}
