package delta

import (
	"fmt"

	"github.com/sparsecast/sparsecast/delta/safetensors"
)

// State is all the weights under one schema, wherever they lie. ReadAt fills p with the bytes of tensor t, an
// index into Schema().Tensors(), from byte off on; it is safe for concurrent use.
type State interface {
	Schema() *Schema
	ReadAt(t int, p []byte, off int64) error
}

// Sink takes the bytes of a state in any order, each byte once. WriteAt is safe for concurrent use.
type Sink interface {
	WriteAt(t int, p []byte, off int64) error
}

// Checkpoint is a State in safetensors files. It holds the files open and no weights in memory.
type Checkpoint struct {
	*safetensors.Checkpoint
	schema *Schema
}

// OpenCheckpoint opens a checkpoint file or directory as a State.
func OpenCheckpoint(path string) (*Checkpoint, error) {
	return OpenCheckpointOn(safetensors.OS{}, path)
}

// OpenCheckpointOn is OpenCheckpoint on another disk than this machine's.
func OpenCheckpointOn(d safetensors.Disk, path string) (*Checkpoint, error) {
	c, err := safetensors.OpenOn(d, path)
	if err != nil {
		return nil, err
	}
	schema, err := NewSchema(c.Tensors())
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Checkpoint{Checkpoint: c, schema: schema}, nil
}

// Schema returns the schema of the checkpoint.
func (c *Checkpoint) Schema() *Schema { return c.schema }

// Draft is a checkpoint file being written: a Sink, and a State of what was written so far. It appears under its
// name only at Commit.
type Draft struct {
	*safetensors.Writer
	schema *Schema
}

// CreateDraft begins a checkpoint of one file at path.
func CreateDraft(path string, schema *Schema) (*Draft, error) {
	return CreateDraftOn(safetensors.OS{}, path, schema)
}

// CreateDraftOn is CreateDraft on another disk than this machine's.
func CreateDraftOn(d safetensors.Disk, path string, schema *Schema) (*Draft, error) {
	// Loaders of the Hugging Face family ask for the format entry.
	w, err := safetensors.CreateOn(d, path, schema.Tensors(), map[string]string{"format": "pt"})
	if err != nil {
		return nil, err
	}
	return &Draft{Writer: w, schema: schema}, nil
}

// Schema returns the schema that the draft was begun with.
func (d *Draft) Schema() *Schema { return d.schema }

// Memory is a State and a Sink in memory, one slice a tensor.
type Memory struct {
	schema  *Schema
	tensors [][]byte
}

// NewMemory returns a state of zeros under schema.
func NewMemory(schema *Schema) *Memory {
	m := &Memory{schema: schema, tensors: make([][]byte, len(schema.Tensors()))}
	for i, t := range schema.Tensors() {
		m.tensors[i] = make([]byte, t.Size)
	}
	return m
}

// Schema returns the schema of m.
func (m *Memory) Schema() *Schema { return m.schema }

// Tensor returns the bytes of tensor t, which stay m's.
func (m *Memory) Tensor(t int) []byte { return m.tensors[t] }

// ReadAt copies bytes of tensor t into p.
func (m *Memory) ReadAt(t int, p []byte, off int64) error {
	if off < 0 || off > int64(len(m.tensors[t])-len(p)) {
		return fmt.Errorf("tensor %d: read of %d bytes at %d, beyond its %d", t, len(p), off, len(m.tensors[t]))
	}
	copy(p, m.tensors[t][off:])
	return nil
}

// WriteAt copies p into tensor t.
func (m *Memory) WriteAt(t int, p []byte, off int64) error {
	if off < 0 || off > int64(len(m.tensors[t])-len(p)) {
		return fmt.Errorf("tensor %d: write of %d bytes at %d, beyond its %d", t, len(p), off, len(m.tensors[t]))
	}
	copy(m.tensors[t][off:], p)
	return nil
}

func (m *Memory) lend(t int, off int64, n int) []byte {
	return m.tensors[t][off : off+int64(n) : off+int64(n)]
}
