package mesh

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"
	"syscall"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
)

// blocksDir holds one file a block, blocks/<first byte of the digest>/<content ID>.
const blocksDir = "blocks"

// diskStore keeps every block in a file of its own. Which blocks exist is known from an index in memory, built
// once; their bytes are trusted only after hashing. Put renames a complete file into place without syncing it:
// Sync makes a whole batch durable at once.
type diskStore struct {
	fs FS

	mu    sync.RWMutex
	held  map[cid.Cid]struct{}
	dirty map[cid.Cid]struct{} // put since the last Sync
}

// NewDiskStore opens the blocks under files, which are its alone.
func NewDiskStore(files FS) (Store, error) {
	s := &diskStore{fs: files, held: make(map[cid.Cid]struct{}), dirty: make(map[cid.Cid]struct{})}
	for b := range 256 {
		if err := s.index(hex.EncodeToString([]byte{byte(b)})); err != nil {
			return nil, fmt.Errorf("open block store: %w; check that its directory is readable", err)
		}
	}
	return s, nil
}

// index adds the blocks of one subdirectory. Names that are not of our making are left alone.
func (s *diskStore) index(sub string) error {
	names, err := s.fs.List(path.Join(blocksDir, sub))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		id, err := cid.Decode(path.Base(name))
		if err != nil {
			continue
		}
		if file, err := blockFile(id); err == nil && path.Base(file) == path.Base(name) {
			s.held[id] = struct{}{}
		}
	}
	return nil
}

// blockFile names the file of a block.
func blockFile(id cid.Cid) (string, error) {
	d, err := delta.Digest(id)
	if err != nil {
		return "", err
	}
	return path.Join(blocksDir, hex.EncodeToString(d[:1]), id.String()), nil
}

func (s *diskStore) Get(id cid.Cid) ([]byte, error) {
	if !s.Has(id) {
		return nil, fmt.Errorf("%s: %w", id, ErrNotFound)
	}
	file, err := blockFile(id)
	if err != nil {
		return nil, err
	}
	data, err := s.fs.ReadFile(file)
	if err == nil {
		err = delta.Check(id, data)
	}
	switch {
	case err == nil:
		return data, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EIO), errors.Is(err, delta.ErrMismatch):
		return nil, fmt.Errorf("dropped (%w): %w", err, errors.Join(ErrNotFound, s.Delete(id)))
	}
	return nil, fmt.Errorf("get block %s: %w", id, err)
}

func (s *diskStore) Has(id cid.Cid) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.held[id]
	return ok
}

func (s *diskStore) Put(id cid.Cid, data []byte) error {
	file, err := blockFile(id)
	if err != nil {
		return fmt.Errorf("put block: %w", err)
	}
	if err := delta.Check(id, data); err != nil {
		return fmt.Errorf("put block: %w", err)
	}
	if s.Has(id) {
		return nil
	}
	if err := s.fs.WriteFile(file, data); err != nil {
		return fmt.Errorf("put block %s: %w", id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[id] = struct{}{}
	s.dirty[id] = struct{}{}
	return nil
}

func (s *diskStore) Delete(id cid.Cid) error {
	s.forget(id)
	file, err := blockFile(id)
	if err != nil {
		return nil // no such block was ever put
	}
	if err := s.fs.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete block %s: %w", id, err)
	}
	return nil
}

func (s *diskStore) forget(id cid.Cid) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, id)
	delete(s.dirty, id)
}

func (s *diskStore) List() ([]cid.Cid, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.held)), nil
}

// Sync drops the whole batch when it fails: after a failed fsync the kernel may have thrown the bytes away and
// still call a second fsync a success, so the blocks must be written, or fetched, again.
func (s *diskStore) Sync() error {
	batch := s.takeDirty()
	if len(batch) == 0 {
		return nil
	}
	names := make([]string, 0, len(batch))
	for _, id := range batch {
		file, err := blockFile(id)
		if err != nil {
			return err
		}
		names = append(names, file)
	}
	if err := s.fs.Sync(names...); err != nil {
		for _, id := range batch {
			err = errors.Join(err, s.Delete(id))
		}
		return fmt.Errorf("sync %d blocks, which are dropped: %w; check the disk", len(batch), err)
	}
	return nil
}

func (s *diskStore) takeDirty() []cid.Cid {
	s.mu.Lock()
	defer s.mu.Unlock()
	batch := slices.Collect(maps.Keys(s.dirty))
	clear(s.dirty)
	return batch
}
