package bench

import (
	"encoding/binary"
	"testing"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
)

// TestLeavesCount has a manifest with more chunks than its root names.
func TestLeavesCount(t *testing.T) {
	const chunks = 5000
	m := &delta.Manifest{
		Schema: delta.Sum([]byte("schema")), Base: delta.Root{1}, Target: delta.Root{2}, Elements: 1 << 40, Changed: 1 << 33, Dense: 1 << 41,
		Coded: chunks << 20, ChunkSize: delta.MaxChunk, Outboard: []cid.Cid{delta.Sum([]byte("outboard"))},
	}
	for i := range chunks {
		m.Chunks = append(m.Chunks, delta.Sum(binary.LittleEndian.AppendUint32(nil, uint32(i))))
	}
	record, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	e, err := (&coded{manifest: m, others: 7}).facts()
	want := Edge{
		Elements: 1 << 40, Changed: 1 << 33, Dense: 1 << 41, Stream: chunks << 20, Outboard: 7,
		Manifest: uint64(len(record.Root)) + chunks*delta.RootSize,
	}
	if err != nil || e != want {
		t.Errorf("%+v, %v; want %+v", e, err, want)
	}
}
