package files

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Spool is a file without a name, written and read one after the other by one goroutine. Its space is taken until it is
// closed, and a crash leaves nothing.
type Spool struct {
	dir  *Dir
	file File
	at   int64
}

// CreateSpool makes an empty spool on the disk of the directory.
func (d *Dir) CreateSpool() (*Spool, error) {
	f, path, err := d.createTemp(d.root)
	if err != nil {
		return nil, fmt.Errorf("make spool: %w", d.Explain(err))
	}
	if err := d.fs.Remove(path); err != nil {
		return nil, errors.Join(fmt.Errorf("make spool: %w", d.Explain(err)), f.Close())
	}
	return &Spool{dir: d, file: f}, nil
}

// Read is part of io.Reader.
func (s *Spool) Read(p []byte) (int, error) {
	n, err := s.file.ReadAt(p, s.at)
	s.at += int64(n)
	return n, err
}

// Write is part of io.Writer.
func (s *Spool) Write(p []byte) (int, error) {
	n, err := s.file.WriteAt(p, s.at)
	s.at += int64(n)
	return n, s.dir.Explain(err)
}

// Seek is part of io.Seeker, from the start or from where the spool is.
func (s *Spool) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += s.at
	default:
		return 0, fmt.Errorf("seek in a spool from %d: only its start and its place are known", whence)
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek in a spool to %d", offset)
	}
	s.at = offset
	return offset, nil
}

// Close gives the space back. There is nothing in it that an error could lose.
func (s *Spool) Close() { s.file.Close() }

// OpenSpool is CreateSpool for what is to outlive the process, though not the machine: the spool has a name, which stays
// until it is removed. It is empty, or else what lies there.
func (d *Dir) OpenSpool(name string, empty bool) (*Spool, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	flags := os.O_RDWR
	if empty {
		if err := d.Remove(name); err != nil {
			return nil, fmt.Errorf("empty spool: %w", err)
		}
		flags |= os.O_CREATE | os.O_EXCL
	}
	f, err := d.fs.OpenFile(d.Path(name), flags, fileMode)
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", d.Explain(err))
	}
	return &Spool{dir: d, file: f}, nil
}
