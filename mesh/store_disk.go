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
//
// What an earlier process left may be torn, or be lost yet when the power fails: it may have died between Put and Sync.
// Get finds out about the former; Put writes such a block again, so that a Sync after it vouches for all that was put.
type diskStore struct {
	fs FS

	mu    sync.RWMutex
	held  map[cid.Cid]uint64   // the size of each
	bytes uint64               // the sum of held
	found map[cid.Cid]struct{} // those of held that another process put
	dirty map[cid.Cid]struct{} // put since the last Sync
	stuck map[cid.Cid]struct{} // not held, but their files could not be removed
}

// NewDiskStore opens the blocks under files, which are its alone.
func NewDiskStore(files FS) (Store, error) {
	s := &diskStore{
		fs: files, held: make(map[cid.Cid]uint64), found: make(map[cid.Cid]struct{}),
		dirty: make(map[cid.Cid]struct{}), stuck: make(map[cid.Cid]struct{}),
	}
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
		file, err := blockFile(id)
		if err != nil || path.Base(file) != path.Base(name) {
			continue
		}
		size, err := s.fs.Size(file)
		if err != nil {
			size = 0 // reading it is going to tell why, and to drop it
		}
		s.add(id, uint64(size))
		s.found[id] = struct{}{}
	}
	return nil
}

// add notes a block that is there. Whoever calls it holds mu, or is alone.
func (s *diskStore) add(id cid.Cid, size uint64) {
	s.bytes += size - s.held[id]
	s.held[id] = size
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

// ours tells whether a block is held that this process put.
func (s *diskStore) ours(id cid.Cid) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, held := s.held[id]
	_, found := s.found[id]
	return held && !found
}

func (s *diskStore) Put(id cid.Cid, data []byte) error {
	file, err := blockFile(id)
	if err != nil {
		return fmt.Errorf("put block: %w", err)
	}
	if err := delta.Check(id, data); err != nil {
		return fmt.Errorf("put block: %w", err)
	}
	if s.ours(id) {
		return nil
	}
	write, again := s.fs.WriteFile, s.Has(id)
	if again {
		write = s.fs.WriteDurable // what is there may be durable and on offer already, and must not be lost to a Sync that fails
	}
	if err := write(file, data); err != nil {
		return fmt.Errorf("put block %s: %w", id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(id, uint64(len(data)))
	if !again {
		s.dirty[id] = struct{}{}
	}
	delete(s.found, id)
	delete(s.stuck, id)
	return nil
}

func (s *diskStore) Delete(id cid.Cid) error {
	s.forget(id)
	file, err := blockFile(id)
	if err != nil {
		return nil // no such block was ever put
	}
	err = s.fs.Remove(file)
	gone := err == nil || errors.Is(err, fs.ErrNotExist)
	s.deleted(id, gone)
	if !gone {
		return fmt.Errorf("delete block %s: %w", id, err)
	}
	return nil
}

func (s *diskStore) forget(id cid.Cid) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes -= s.held[id]
	delete(s.held, id)
	delete(s.found, id)
	delete(s.dirty, id)
}

// deleted notes whether the file of a block is gone. Another Put may have come in between: then it is no leftover.
func (s *diskStore) deleted(id cid.Cid, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.stuck, id)
	if _, again := s.held[id]; !gone && !again {
		s.stuck[id] = struct{}{}
	}
}

// List names what could not be deleted, too, so that whoever tidies up tries again.
func (s *diskStore) List() ([]cid.Cid, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.AppendSeq(slices.Collect(maps.Keys(s.held)), maps.Keys(s.stuck)), nil
}

func (s *diskStore) Size() (blocks int, bytes uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.held), s.bytes
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
