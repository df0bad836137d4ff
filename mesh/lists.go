package mesh

import (
	"errors"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
)

// maxLists bounds the chunk lists kept at hand.
const maxLists = 32

// chunksOf returns the chunks of a manifest that is being fetched or in the store, nil when there is none.
func (x *Exchange) chunksOf(id cid.Cid) []cid.Cid {
	x.mu.Lock()
	f, list := x.fetches[id], x.lists[id]
	_, known := x.lists[id]
	x.mu.Unlock()
	switch {
	case f != nil:
		return f.m.Chunks
	case known || !x.store.Has(id):
		return list
	}
	raw, err := x.store.Get(id)
	if err != nil {
		return nil
	}
	m, err := delta.DecodeManifest(raw, x.store.Get)
	switch {
	case err == nil:
		list = m.Chunks
	case errors.Is(err, ErrNotFound):
		return nil // a leaf may still come
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for other := range x.lists {
		if len(x.lists) < maxLists {
			break
		}
		delete(x.lists, other)
	}
	x.lists[id] = list
	return list
}
