package node

import (
	"context"

	"github.com/sparsecast/sparsecast/delta"
)

// Beside each slot lie the digests of its blocks, which tell the blocks that are damaged from those that are not.

func digestsFile(slot string) string { return "slots/" + slot + ".digests" }

// keepDigests notes the digests of what a slot holds. Without them damage costs a full bring-up, no more.
func (s *slots) keepDigests(slot string, d *delta.Digests, schema *delta.Schema) {
	b, err := d.Encode(schema)
	if err == nil {
		err = s.place.WriteFile(digestsFile(slot), b)
	}
	if err != nil {
		s.log.Warn().Err(err).Str("slot", slot).Msg("digests not kept, damage in this slot is not going to be repaired block by block")
	}
}

// promised returns the digests of the state with that root, as kept beside a slot, nil when they are not there.
func (s *slots) promised(slot string, schema *delta.Schema, root delta.Root) *delta.Digests {
	b, err := s.place.ReadFile(digestsFile(slot))
	if err != nil {
		return nil
	}
	d, err := delta.DecodeDigests(b, schema)
	if err != nil {
		return nil
	}
	if folded, err := d.Root(schema); err != nil || folded != root {
		return nil
	}
	return d
}

// survey is what a slot holds by reading all of it.
type survey struct {
	root    delta.Root
	digests *delta.Digests
	schema  *delta.Schema
}

// readAll reads a slot whole, and changes nothing.
func readAll(ctx context.Context, c *states, progress func(uint64)) (f survey, err error) {
	f.schema = c.Schema()
	if f.digests, err = delta.DigestsOf(ctx, c, progress); err != nil {
		return survey{}, err
	}
	if err = c.Changed(); err != nil {
		return survey{}, err
	}
	f.root, err = f.digests.Root(f.schema)
	return f, err
}

// harm is damage that was found in a slot: Blocks of the state Root are not what they should be. Without blocks it is
// not known which.
type harm struct {
	root   delta.Root
	blocks []int

	// Of a change in place that was cut short:
	from  delta.Root     // what the slot held before; zero when it is other damage
	holds *delta.Digests // what it holds
}

// compare tells what is wrong with a slot that should hold root; ok is true when nothing is.
func (s *slots) compare(slot string, root delta.Root, f survey) (h harm, ok bool) {
	if f.root == root {
		return harm{}, true
	}
	h.root = root
	if f.schema == nil {
		return h, false
	}
	if want := s.promised(slot, f.schema, root); want != nil {
		h.blocks = want.Diff(f.digests)
	}
	return h, false
}
