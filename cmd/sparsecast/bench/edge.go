package bench

import (
	"bytes"
	"context"
	"errors"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
)

// Edge is what our code of a pair, or of a full copy, takes.
type Edge struct {
	Elements uint64 `json:"elements"`
	Changed  uint64 `json:"changed"`
	Dense    uint64 `json:"dense_bytes"`
	Stream   uint64 `json:"stream_bytes"`
	Manifest uint64 `json:"manifest_bytes"` // with its leaves
	Outboard uint64 `json:"outboard_bytes"` // fetched for repair only
}

// wire returns the bytes that every receiver fetches.
func (e Edge) wire() uint64 { return e.Stream + e.Manifest }

// coded is an edge in memory.
type coded struct {
	spool    spool
	manifest *delta.Manifest
	chunks   [][]byte
	others   uint64 // bytes of the blocks behind the chunks
}

// code writes the edge of a pair. What an earlier call made is gone then.
func (c *coded) code(ctx context.Context, p pair) (err error) {
	c.spool.empty()
	c.chunks, c.others = c.chunks[:0], 0
	var blocks [][]byte
	var old delta.State // not a pointer that is nil
	if p.old != nil {
		old = p.old
	}
	c.manifest, _, err = delta.WriteEdge(ctx, &c.spool, old, p.new, delta.EncodeOptions{}, func(_ cid.Cid, b []byte) error {
		blocks = append(blocks, b)
		return nil
	})
	if err != nil {
		return err
	}
	c.chunks = blocks[:len(c.manifest.Chunks)]
	for _, b := range blocks[len(c.chunks):] {
		c.others += uint64(len(b))
	}
	return nil
}

// apply decodes the edge to sink, which is checked against the promised root.
func (c *coded) apply(ctx context.Context, old, sink *delta.Memory) error {
	var base delta.State
	if old != nil {
		base = old
	}
	get := func(i int) ([]byte, error) { return c.chunks[i], nil }
	_, err := delta.ApplyEdge(ctx, c.manifest, get, sink.Schema(), base, sink, delta.DecodeOptions{})
	return err
}

// facts tells what the edge takes.
func (c *coded) facts() (Edge, error) {
	m := c.manifest
	record, err := m.Encode()
	if err != nil {
		return Edge{}, err
	}
	e := Edge{
		Elements: m.Elements, Changed: m.Changed, Dense: m.Dense,
		Stream: m.Coded, Manifest: uint64(len(record.Root)), Outboard: c.others,
	}
	for _, leaf := range record.Leaves {
		e.Manifest += uint64(len(leaf))
	}
	return e, nil
}

// measureEdge codes a pair, or a full copy where there is no old state, and sees that it leads to the new state.
func measureEdge(ctx context.Context, p pair) (Edge, error) {
	var c coded
	if err := c.code(ctx, p); err != nil {
		return Edge{}, err
	}
	got := delta.NewMemory(p.new.Schema())
	if err := c.apply(ctx, p.old, got); err != nil {
		return Edge{}, err
	}
	if !equal(got, p.new) {
		return Edge{}, errors.New("the code leads to another state, though its root is right")
	}
	return c.facts()
}

// equal compares two states of one schema bit for bit.
func equal(a, b *delta.Memory) bool {
	for i := range a.Schema().Tensors() {
		if !bytes.Equal(a.Tensor(i), b.Tensor(i)) {
			return false
		}
	}
	return true
}
