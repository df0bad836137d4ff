package safetensors

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

const (
	prefix    = 8           // bytes of the header's length, little-endian
	minHeader = 2           // "{}"
	maxHeader = 100_000_000 // the reference's bound; without it a length alone could claim all memory
	maxFile   = 1 << 62     // bytes of a file, so that sums of sizes and offsets never overflow
)

// entry is a tensor and its place in the byte buffer that follows the header.
type entry struct {
	Tensor
	begin, end uint64
}

// header is a parsed file header. Its tensors are sorted by name.
type header struct {
	entries  []entry
	metadata map[string]string // nil when absent
	total    uint64            // bytes that the tensors cover, from 0 on and without holes
}

// parseHeader reads the JSON text of a header and checks all that can be known without the data.
func parseHeader(b []byte) (*header, error) {
	w, err := newWalker(b)
	if err != nil {
		return nil, fmt.Errorf("header %w", err)
	}
	h, hasMetadata := new(header), false
	err = w.object(func(key string) (err error) {
		if key != metadataKey {
			return h.parseEntry(w, key)
		}
		if hasMetadata {
			return fmt.Errorf("duplicate key %q", metadataKey)
		}
		hasMetadata = true
		h.metadata, err = parseMetadata(w)
		return err
	})
	if err == nil {
		err = w.end()
	}
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	return h, h.check()
}

// parseEntry consumes the description of one tensor.
func (h *header) parseEntry(w *walker, name string) error {
	if err := checkCount(len(h.entries)); err != nil {
		return err
	}
	e := entry{Tensor: Tensor{Name: name}}
	var hasType bool
	var offsets []uint64
	err := w.object(func(key string) (err error) {
		switch {
		case key == "dtype" && !hasType:
			hasType = true
			e.DType, err = w.text()
		case key == "shape" && e.Shape == nil:
			e.Shape, err = w.numbers(maxDims)
		case key == "data_offsets" && offsets == nil:
			offsets, err = w.numbers(2)
		default:
			return fmt.Errorf("unknown or duplicate key %s", quote(key))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	})
	if err == nil && (!hasType || e.Shape == nil || len(offsets) != 2) {
		err = errors.New("want dtype, shape and two data_offsets")
	}
	if err == nil {
		err = e.place(offsets[0], offsets[1])
	}
	if err != nil {
		return fmt.Errorf("tensor %s: %w", quote(name), err)
	}
	h.entries = append(h.entries, e)
	return nil
}

// place sets where e lies and checks that its size is what its shape takes.
func (e *entry) place(begin, end uint64) error {
	if begin > end {
		return fmt.Errorf("begins at %d, after its end at %d", begin, end)
	}
	if end > maxFile {
		return fmt.Errorf("ends at byte %d, at most %d", end, int64(maxFile))
	}
	e.begin, e.end, e.Size = begin, end, int64(end-begin)
	return e.check()
}

// parseMetadata consumes the free-form strings; null counts as none, as in the reference.
func parseMetadata(w *walker) (map[string]string, error) {
	m := map[string]string{}
	var count metadataCount
	found, err := w.objectOrNull(func(key string) error {
		if _, twice := m[key]; twice {
			return fmt.Errorf("duplicate key %s", quote(key))
		}
		v, err := w.text()
		if err != nil {
			return fmt.Errorf("%s: %w", quote(key), err)
		}
		m[key] = v
		return count.add(key, v)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", metadataKey, err)
	}
	if !found {
		return nil, nil
	}
	return m, nil
}

// check refuses duplicate names, then holes and overlaps, and leaves the entries sorted by name.
// In this order a duplicate is called that, and not an overlap.
func (h *header) check() error {
	byName := func(a, b entry) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(h.entries, byName)
	for i := 1; i < len(h.entries); i++ {
		if h.entries[i].Name == h.entries[i-1].Name {
			return fmt.Errorf("header: duplicate tensor %s", quote(h.entries[i].Name))
		}
	}
	if err := h.cover(); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	slices.SortFunc(h.entries, byName)
	return nil
}

// cover verifies that the tensors follow each other without holes or overlaps, and sums them up.
func (h *header) cover() error {
	slices.SortFunc(h.entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	for i, e := range h.entries {
		if e.begin > h.total {
			return fmt.Errorf("tensor %s: a hole of %d bytes before it", quote(e.Name), e.begin-h.total)
		}
		if e.begin < h.total {
			return fmt.Errorf("tensor %s: overlaps %s", quote(e.Name), quote(h.entries[i-1].Name))
		}
		h.total = e.end
	}
	return nil
}
