package mesh

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
	"pgregory.net/rapid"
)

// testStore checks what every Store promises against a map.
func testStore(t *testing.T, open func() Store) {
	t.Run("behaves like a map", rapid.MakeCheck(func(t *rapid.T) {
		s, model := open(), make(map[cid.Cid][]byte)
		block := rapid.Map(rapid.IntRange(0, 9), func(i int) []byte { return fmt.Append(nil, "block ", i) })
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				b := block.Draw(t, "block")
				if err := s.Put(delta.Sum(b), b); err != nil {
					t.Fatal(err)
				}
				model[delta.Sum(b)] = b
			},
			"put what the ID does not name": func(t *rapid.T) {
				b := block.Draw(t, "block")
				if err := s.Put(delta.Sum(b), append([]byte("x"), b...)); !errors.Is(err, delta.ErrMismatch) {
					t.Fatalf("want ErrMismatch, got %v", err)
				}
			},
			"delete": func(t *rapid.T) {
				id := delta.Sum(block.Draw(t, "block"))
				if err := s.Delete(id); err != nil {
					t.Fatal(err)
				}
				delete(model, id)
			},
			"sync": func(t *rapid.T) {
				if err := s.Sync(); err != nil {
					t.Fatal(err)
				}
			},
			"get": func(t *rapid.T) {
				id := delta.Sum(block.Draw(t, "block"))
				got, err := s.Get(id)
				want, ok := model[id]
				if s.Has(id) != ok || ok && (err != nil || !bytes.Equal(got, want)) || !ok && !errors.Is(err, ErrNotFound) {
					t.Fatalf("got %q, %v, want %q", got, err, want)
				}
			},
			"": func(t *rapid.T) {
				var want uint64
				for _, b := range model {
					want += uint64(len(b))
				}
				if blocks, bytes := s.Size(); blocks != len(model) || bytes != want {
					t.Fatalf("says %d blocks of %d bytes, holds %d of %d", blocks, bytes, len(model), want)
				}
				got, err := s.List()
				if err != nil || !slices.Equal(sorted(got), sorted(slices.Collect(maps.Keys(model)))) {
					t.Fatalf("lists %v, %v, want %v", got, err, slices.Collect(maps.Keys(model)))
				}
			},
		})
	}))
	t.Run("refuses other kinds of ID", func(t *testing.T) {
		b := []byte("block")
		d, err := delta.Digest(delta.Sum(b))
		if err != nil {
			t.Fatal(err)
		}
		mh := delta.Sum(b).Hash()
		if err := open().Put(cid.NewCidV1(cid.DagCBOR, mh), b); err == nil {
			t.Errorf("took a block under an ID of another codec (digest %x)", d)
		}
	})
	t.Run("takes many hands", func(t *testing.T) {
		s := open()
		var hands sync.WaitGroup
		for h := range 8 {
			hands.Go(func() {
				for i := range 50 {
					b := fmt.Append(nil, "block ", i%10)
					id := delta.Sum(b)
					if err := s.Put(id, b); err != nil {
						t.Error(err)
					}
					if got, err := s.Get(id); err == nil && !bytes.Equal(got, b) || err != nil && !errors.Is(err, ErrNotFound) {
						t.Errorf("got %q, %v", got, err)
					}
					if h%4 == 0 {
						if err := s.Delete(id); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		hands.Wait()
	})
}

func sorted(ids []cid.Cid) []string {
	var names []string
	for _, id := range ids {
		names = append(names, id.String())
	}
	slices.Sort(names)
	return names
}

func TestMemoryStore(t *testing.T) { testStore(t, NewMemoryStore) }
