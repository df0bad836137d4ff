package node

import (
	"fmt"
	"path/filepath"

	"github.com/sparsecast/sparsecast/delta"
)

// begin empties a slot and begins a new version in it, which takes its place at commit. Keep is the root that the new
// one is made from: a slot that holds it stays until then.
func (s *slots) begin(sl slot, schema *delta.Schema, keep delta.Root) (*drafts, error) {
	if err := s.prepare(sl, schema, keep); err != nil {
		return nil, err
	}
	return s.create(sl, schema)
}

// prepare empties a slot, unless it holds keep.
func (s *slots) prepare(sl slot, schema *delta.Schema, keep delta.Root) error {
	if !keep.IsZero() && sl.root == keep {
		return nil
	}
	return s.empty(sl, schema)
}

// create begins a new version in a slot that is prepared. What lies beside the weights says how they are named.
func (s *slots) create(sl slot, schema *delta.Schema) (*drafts, error) {
	d, err := createStates(s.dir.FS(), s.layout(sl, schema, s.wanted), schema)
	if err != nil {
		return nil, fmt.Errorf("slot %s: %w", sl.name, s.explain(err))
	}
	return d, nil
}

// empty forgets a slot, frees its space and prepares it for schema. Whoever still has its files open reads on
// undisturbed.
func (s *slots) empty(sl slot, schema *delta.Schema) error {
	s.set(sl.name, delta.Root{})
	if err := s.clear(sl, schema); err != nil {
		return fmt.Errorf("empty slot %s: %w", sl.name, s.explain(err))
	}
	for _, r := range schema.States() {
		if err := s.dir.FS().MkdirAll(filepath.Join(sl.dir, r.Name), 0o700); err != nil {
			return fmt.Errorf("make slot %s: %w", sl.name, s.explain(err))
		}
	}
	return nil
}

// commit gives a draft its place. Root has been checked by whoever wrote the draft. Nothing waits for the disk: after a
// crash of the machine the slot is hashed before it is believed.
func (s *slots) commit(sl slot, d *drafts, root delta.Root, digests *delta.Digests) error {
	if err := d.Place(); err != nil {
		return fmt.Errorf("slot %s: %w", sl.name, s.explain(err))
	}
	schema := d.Schema()
	c, err := openStatesUnder(s.dir.FS(), s.layout(sl, schema, s.wanted), func([]delta.StateTensors) (*delta.Schema, error) { return schema, nil })
	if err != nil {
		return fmt.Errorf("slot %s: %w", sl.name, err)
	}
	defer c.Close()
	if err := s.mark(sl.name, root, c); err != nil {
		return fmt.Errorf("slot %s: %w", sl.name, err)
	}
	s.keepDigests(sl.name, digests, schema)
	s.set(sl.name, root)
	return nil
}
