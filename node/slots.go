package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/node/files"
)

// weightsFile is the one file of a slot that holds weights, under the name that loaders look for.
const weightsFile = "model.safetensors"

// slotNames are the two places for copies of a state: one is served while the other is brought up.
var slotNames = [2]string{"a", "b"}

// slot is one complete copy of a state on this host. The zero slot is none.
type slot struct {
	name string     // a, b or base
	path string     // checkpoint to open: file or directory
	dir  string     // directory that an engine can load
	root delta.Root // what is in it; zero when nothing is
}

// slots are the copies of the state that this host has: the base checkpoint, which is only read, and two of our own.
// A slot is a cache. It is believed by its marker as long as neither its files nor the boot changed, and hashed again
// otherwise.
type slots struct {
	dir *files.Dir
	log zerolog.Logger

	mu   sync.Mutex
	base slot    // without a root when no base is configured
	own  [2]slot // as slotNames
	busy string  // the slot that must be left alone: it is served, or holds the version published last
}

// openSlots finds out what the slots and the base hold; that may take a full read of each.
func openSlots(ctx context.Context, dir *files.Dir, basePath string, log zerolog.Logger) (*slots, error) {
	s := &slots{dir: dir, log: log}
	for i, name := range slotNames {
		s.own[i] = slot{name: name, path: dir.Path(slotFile(name)), dir: dir.Path("slots/" + name)}
		root, err := s.identify(ctx, s.own[i])
		if err != nil {
			log.Warn().Err(err).Str("slot", name).Msg("slot unusable, treated as empty")
		}
		s.own[i].root = root
	}
	if basePath == "" {
		return s, nil
	}
	err := s.openBase(ctx, basePath)
	if err == nil {
		err = s.copySidecars()
	}
	if err != nil && len(s.held()) == 0 {
		return nil, err
	}
	if err != nil {
		log.Warn().Err(err).Msg("going on without the base, from what the slots hold")
	}
	return s, nil
}

func slotFile(name string) string { return "slots/" + name + "/" + weightsFile }

func (s *slots) openBase(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("base checkpoint: %w: set base: to the checkpoint that every host starts from", err)
	}
	s.base = slot{name: "base", path: path, dir: path}
	if !info.IsDir() {
		// Engines load directories, and the one around the file may hold other weights.
		if err := s.dir.Symlink(path, slotFile("base")); err != nil {
			return fmt.Errorf("base checkpoint: %w", err)
		}
		s.base.dir = s.dir.Path("slots/base")
	}
	if s.base.root, err = s.identify(ctx, s.base); err != nil {
		return fmt.Errorf("base checkpoint: %w", err)
	}
	return nil
}

// identify returns the root of what lies in the slot, zero when nothing does.
func (s *slots) identify(ctx context.Context, sl slot) (delta.Root, error) {
	c, err := delta.OpenCheckpoint(sl.path)
	if errors.Is(err, fs.ErrNotExist) && sl.name != "base" {
		return delta.Root{}, nil
	}
	if err != nil {
		return delta.Root{}, err
	}
	root, ok := s.believe(sl.name, c)
	c.Close()
	if ok {
		return root, nil
	}
	return s.hash(ctx, sl)
}

// hash reads a slot whole, returns its root and marks it.
func (s *slots) hash(ctx context.Context, sl slot) (delta.Root, error) {
	c, err := delta.OpenCheckpoint(sl.path)
	if err != nil {
		return delta.Root{}, err
	}
	defer c.Close()
	root, err := delta.RootOf(ctx, c, s.progress(sl, c.Schema().Bytes()))
	if err == nil {
		err = c.Changed()
	}
	if err != nil {
		return delta.Root{}, err
	}
	if err := s.mark(sl.name, root, c); err != nil {
		s.log.Warn().Err(err).Str("slot", sl.name).Msg("slot will be read again at the next start")
	}
	return root, nil
}

// progress returns a function that logs how far the reading of a slot is, at its begin and now and then.
func (s *slots) progress(sl slot, total uint64) func(uint64) {
	var told time.Time
	return func(done uint64) {
		if time.Since(told) < 10*time.Second {
			return
		}
		told = time.Now()
		s.log.Info().Str("slot", sl.name).Str("path", sl.path).Uint64("bytes", done).Uint64("of", total).Msg("hashing weights")
	}
}

// held returns the roots that are here.
func (s *slots) held() []delta.Root {
	s.mu.Lock()
	defer s.mu.Unlock()
	var roots []delta.Root
	for _, sl := range []slot{s.base, s.own[0], s.own[1]} {
		if !sl.root.IsZero() {
			roots = append(roots, sl.root)
		}
	}
	return roots
}

// find returns a slot that holds root. Our own come before the base, which others may change.
func (s *slots) find(root delta.Root) (slot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sl := range []slot{s.own[0], s.own[1], s.base} {
		if !root.IsZero() && sl.root == root {
			return sl, true
		}
	}
	return slot{}, false
}

// idle returns the slot of our own that may be written.
func (s *slots) idle() slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own[0].name == s.busy {
		return s.own[1]
	}
	return s.own[0]
}

// hold marks the one slot that must be left alone from now on.
func (s *slots) hold(sl slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = sl.name
}

// begin empties a slot and begins a new state in it, which takes its place at commit. Keep is the root that the new
// state is made from: a slot that holds it stays until then.
func (s *slots) begin(sl slot, schema *delta.Schema, keep delta.Root) (*delta.Draft, error) {
	if keep.IsZero() || sl.root != keep {
		if err := s.empty(sl); err != nil {
			return nil, err
		}
	}
	d, err := delta.CreateDraft(sl.path, schema)
	if err != nil {
		return nil, fmt.Errorf("slot %s: %w", sl.name, err)
	}
	return d, nil
}

// empty forgets a slot and frees its space. Whoever still has its file open reads on undisturbed.
func (s *slots) empty(sl slot) error {
	s.set(sl.name, delta.Root{})
	clear := sl.path // whatever somebody put there
	if info, err := os.Lstat(sl.dir); err == nil && !info.IsDir() {
		clear = sl.dir
	}
	if err := os.RemoveAll(clear); err != nil {
		return fmt.Errorf("empty slot %s: %w", sl.name, err)
	}
	if err := os.MkdirAll(sl.dir, 0o700); err != nil {
		return fmt.Errorf("make slot %s: %w", sl.name, err)
	}
	return nil
}

// commit gives a draft its place. Root has been checked by whoever wrote the draft. Nothing waits for the disk: after a
// crash of the machine the slot is hashed before it is believed.
func (s *slots) commit(sl slot, d *delta.Draft, root delta.Root) error {
	if err := d.Place(); err != nil {
		return fmt.Errorf("slot %s: %w", sl.name, err)
	}
	c, err := delta.OpenCheckpoint(sl.path)
	if err != nil {
		return fmt.Errorf("slot %s: %w", sl.name, err)
	}
	defer c.Close()
	if err := s.mark(sl.name, root, c); err != nil {
		return fmt.Errorf("slot %s: %w", sl.name, err)
	}
	s.set(sl.name, root)
	return nil
}

// disown forgets what a slot holds without touching its files.
func (s *slots) disown(sl slot) {
	s.set(sl.name, delta.Root{})
	if sl.name != "base" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.base.root = delta.Root{}
}

func (s *slots) set(name string, root delta.Root) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.own {
		if s.own[i].name == name {
			s.own[i].root = root
		}
	}
}

// unpoint removes the link current, so that nobody loads what is not known to be whole.
func (s *slots) unpoint() error { return s.dir.Remove("current") }

// point lets the link current lead to a slot, which is left alone from then on.
func (s *slots) point(sl slot) error {
	target := sl.dir
	if rel, err := filepath.Rel(s.dir.Path("."), sl.dir); err == nil && filepath.IsLocal(rel) {
		target = rel // survives a move of the data directory
	}
	if now, err := os.Readlink(s.dir.Path("current")); err != nil || now != target {
		if err := s.dir.Symlink(target, "current"); err != nil {
			return fmt.Errorf("switch current to slot %s: %w", sl.name, err)
		}
	}
	s.hold(sl)
	return nil
}
