package mesh

import (
	"testing"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
)

// A manifest of so many chunks that it has leaves goes round like any other, also where its root was known before
// its leaves: that it could not be read then must not be remembered.
func TestManifestsWithLeavesGoRound(t *testing.T) {
	p := newPayload(t, 1030, 1)
	e, err := p.m.Encode()
	if err != nil || len(e.Leaves) == 0 {
		t.Fatalf("%d leaves: %v", len(e.Leaves), err)
	}
	inSwarm(t, 3, flat, func(t *testing.T, nodes []*testNode) {
		trainer, first, second := nodes[0], nodes[1], nodes[2]
		p.fill(t, trainer.store, 0, len(p.chunks))
		for _, leaf := range e.Leaves {
			if err := trainer.store.Put(delta.Sum(leaf), leaf); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := first.Block(t.Context(), p.id, delta.MaxManifest); err != nil {
			t.Fatal(err)
		}
		if got := first.chunksOf(p.id); got != nil {
			t.Fatalf("%d chunks are known without the leaves", len(got))
		}
		bring(t, first, p)
		if got := first.chunksOf(p.id); len(got) != len(p.chunks) {
			t.Fatalf("%d chunks are known, want %d", len(got), len(p.chunks))
		}
		trainer.crash()
		bring(t, second, p)
	})
}

// bring fetches p as a node does that knows its ID alone.
func bring(t *testing.T, n *testNode, p payload) {
	t.Helper()
	b, err := n.Block(t.Context(), p.id, delta.MaxManifest)
	if err != nil {
		t.Fatal(err)
	}
	m, err := delta.DecodeManifest(b, func(id cid.Cid) ([]byte, error) { return n.Block(t.Context(), id, delta.MaxLeaf) })
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Fetch(t.Context(), p.id, m, nil); err != nil {
		t.Fatal(err)
	}
	p.check(t, n.store)
}
