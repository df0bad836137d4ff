package mesh

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
)

// memoryStore is a Store that forgets everything with its process.
type memoryStore struct {
	mu     sync.RWMutex
	blocks map[cid.Cid][]byte
	bytes  uint64 // in all blocks
}

// NewMemoryStore returns an empty store in memory, without a limit of its own.
func NewMemoryStore() Store {
	return &memoryStore{blocks: make(map[cid.Cid][]byte)}
}

func (s *memoryStore) Get(id cid.Cid) ([]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	data, ok := s.blocks[id]
	if !ok {
		return nil, fmt.Errorf("%s: %w", id, ErrNotFound)
	}
	return data, nil
}

func (s *memoryStore) Has(id cid.Cid) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.blocks[id]
	return ok
}

func (s *memoryStore) Put(id cid.Cid, data []byte) error {
	if err := delta.Check(id, data); err != nil {
		return fmt.Errorf("put block: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, held := s.blocks[id]; !held {
		s.bytes += uint64(len(data))
	}
	s.blocks[id] = data
	return nil
}

func (s *memoryStore) Delete(id cid.Cid) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes -= uint64(len(s.blocks[id]))
	delete(s.blocks, id)
	return nil
}

func (s *memoryStore) List() ([]cid.Cid, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.blocks)), nil
}

func (s *memoryStore) Sync() error { return nil }

func (s *memoryStore) Size() (blocks int, bytes uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.blocks), s.bytes
}
