package delta

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	// MaxSidecars and MaxSidecarBytes bound the files that travel with an anchor, and their size in all.
	MaxSidecars     = 256
	MaxSidecarBytes = 1 << 30
)

// Sidecar is a small file that an engine needs beside the weights (configuration, tokenizer). Its name has no leading
// dot and no slash but one, behind the name of the state that it lies beside: config.json, draft/config.json.
type Sidecar struct {
	Name string
	Size uint64 // bytes
}

// Split returns the name of the state that s lies beside, empty for the one without a name, and that of the file.
func (s Sidecar) Split() (state, file string) {
	state, file, ok := strings.Cut(s.Name, "/")
	if !ok {
		return "", s.Name
	}
	return state, file
}

// Validate tells why a file of that name cannot travel.
func (s Sidecar) Validate() error {
	state, file := s.Split()
	if strings.Contains(s.Name, "/") {
		if err := checkLocalName(state); err != nil {
			return fmt.Errorf("state: %w", err)
		}
	}
	return checkLocalName(file)
}

// Attachment is a sidecar to be sent along. Content must have just Size bytes.
type Attachment struct {
	Sidecar
	Content io.Reader
}

func (m *Manifest) sidecarBytes() (n uint64) {
	for _, s := range m.Sidecars {
		n += s.Size
	}
	return n
}

func (m *Manifest) validateSidecars() error {
	if len(m.Sidecars) > 0 && !m.Base.IsZero() {
		return errors.New("files with a delta: they travel with anchors only")
	}
	if len(m.Sidecars) > MaxSidecars {
		return fmt.Errorf("%d files, at most %d", len(m.Sidecars), MaxSidecars)
	}
	total := uint64(0)
	for i, s := range m.Sidecars {
		if err := s.Validate(); err != nil {
			return fmt.Errorf("file %d: %w", i, err)
		}
		if i > 0 && m.Sidecars[i-1].Name >= s.Name {
			return fmt.Errorf("file %q: doubled or out of order", s.Name)
		}
		if s.Size > MaxSidecarBytes-total {
			return fmt.Errorf("files of more than %d bytes", MaxSidecarBytes)
		}
		total += s.Size
	}
	return nil
}

// ReadSidecars hands every file that travels with m to put, in order. Get returns chunk i; what it returns is
// checked before put sees it. Put reads as much of the content as it likes.
func ReadSidecars(m *Manifest, get func(i int) ([]byte, error), put func(s Sidecar, content io.Reader) error) error {
	r := &chunkReader{manifest: m, get: get, next: m.streamChunks(), end: len(m.Chunks)}
	for _, s := range m.Sidecars {
		content := io.LimitReader(r, int64(s.Size))
		if err := put(s, content); err != nil {
			return fmt.Errorf("file %s: %w", s.Name, err)
		}
		if _, err := io.Copy(io.Discard, content); err != nil {
			return fmt.Errorf("file %s: %w", s.Name, err)
		}
	}
	return nil
}

// exactly reads the files of a list one after the other and fails where one is shorter or longer than it should be.
func exactly(files []Attachment) io.Reader {
	readers := make([]io.Reader, len(files))
	for i, f := range files {
		readers[i] = &exactReader{f: f, left: f.Size}
	}
	return io.MultiReader(readers...)
}

type exactReader struct {
	f    Attachment
	left uint64
}

func (r *exactReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		var one [1]byte
		if n, err := io.ReadFull(r.f.Content, one[:]); n > 0 {
			return 0, fmt.Errorf("file %s: more than its %d bytes: publish again when nobody writes to it", r.f.Name, r.f.Size)
		} else if !errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("file %s: %w", r.f.Name, err)
		}
		return 0, io.EOF
	}
	n, err := r.f.Content.Read(p[:min(uint64(len(p)), r.left)])
	r.left -= uint64(n)
	if errors.Is(err, io.EOF) {
		err = nil
		if r.left > 0 {
			err = fmt.Errorf("file %s: %d of its %d bytes are missing: publish again when nobody writes to it", r.f.Name, r.left, r.f.Size)
		}
	}
	return n, err
}
