package delta

import (
	"fmt"

	"github.com/sparsecast/sparsecast/delta/safetensors"
)

// Patch is a checkpoint file that is changed where it lies: a State and a Sink over the same bytes.
type Patch struct {
	*safetensors.Patch
	schema *Schema
}

// OpenPatchOn opens a checkpoint file for changes.
func OpenPatchOn(d safetensors.Disk, path string) (*Patch, error) {
	p, err := safetensors.OpenPatchOn(d, path)
	if err != nil {
		return nil, err
	}
	schema, err := NewSchema(p.Tensors())
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Patch{Patch: p, schema: schema}, nil
}

// Schema returns the schema of the checkpoint.
func (p *Patch) Schema() *Schema { return p.schema }
