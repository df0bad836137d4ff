package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// series is a policy that goes on for ever, a step at a time, and the oracle of what was made so far: hosts may hold
// the states of these steps and nothing else.
type series struct {
	t      *testing.T
	dir    string
	state  weights
	random *rand.Rand

	mu    sync.Mutex
	known []string // the digest of each step's tensors, the base first
}

// newSeries makes the base of a policy with tensors of several dtypes, a few hundred kilobytes in all.
func newSeries(t *testing.T, random *rand.Rand) *series {
	t.Helper()
	s := &series{t: t, dir: t.TempDir(), random: random, state: weights{
		must(filled("embed", "BF16", []uint64{512, 128}, "803f813f003ec0bd")),
		must(filled("layer.0.up", "BF16", []uint64{256, 128}, "cc3d4dbe0a3c")),
		must(filled("layer.0.quantized", "F8_E4M3", []uint64{128, 256}, "38393a3b3c")),
		must(filled("layer.0.scales", "F8_E8M0", []uint64{128, 8}, "7f80")),
		must(filled("layer.1.up", "F16", []uint64{128, 128}, "003c0038")),
		must(filled("head", "F32", []uint64{64, 128}, "cdcc4c3e0000803f")),
		must(filled("ids", "I64", []uint64{33}, "0100000000000000")),
		must(filled("mask", "BOOL", []uint64{77}, "0100")),
		must(filled("empty", "BF16", []uint64{0, 16}, "")),
	}}
	s.save()
	return s
}

// next changes some elements of every tensor and returns the number and the checkpoint of the new step.
func (s *series) next() (number int, path string) {
	s.t.Helper()
	for _, t := range s.state {
		for range (len(t.data) + 63) / 64 {
			t.data[s.random.IntN(len(t.data))] ^= 1 << s.random.IntN(2)
		}
	}
	s.state.find("ids").data[0]++ // no step equals the one before
	return s.save()
}

// save writes the newest step to a file. It is known before anyone can have it.
func (s *series) save() (number int, path string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	number = len(s.known)
	path = filepath.Join(s.dir, fmt.Sprintf("step_%06d.safetensors", number))
	if err := s.state.save(path); err != nil {
		s.t.Error(err)
		return number, path
	}
	d, err := digestOf(path)
	if err != nil {
		s.t.Error(err)
	}
	s.known = append(s.known, d)
	return number, path
}

// base is the checkpoint of step 0.
func (s *series) base() string { return filepath.Join(s.dir, "step_000000.safetensors") }

// stepOf returns the step whose tensors lie at path, -1 when there is no such step.
func (s *series) stepOf(path string) (int, error) {
	d, err := digestOf(path)
	if err != nil {
		return -1, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Index(s.known, d), nil
}

// look reads what a host serves right now, running or not, and wants it to be a whole step and none before the last
// one seen there.
func (s *series) look(h *host, seen map[*host]int) {
	s.t.Helper()
	step, err := s.stepOf(h.current())
	for end := time.Now().Add(patience); errors.Is(err, fs.ErrNotExist) && time.Now().Before(end); step, err = s.stepOf(h.current()) {
		if _, linked := os.Lstat(h.current()); linked != nil && seen[h] == 0 {
			return // nothing was ever served here
		}
		time.Sleep(10 * time.Millisecond) // the link was followed just before two switches
	}
	switch {
	case err != nil:
		s.t.Errorf("%s serves nothing that can be read: %v", h.name, err)
	case step < 0:
		s.t.Errorf("%s serves the tensors of no step", h.name)
	case step < seen[h]:
		s.t.Errorf("%s went back from step %d to %d", h.name, seen[h], step)
	default:
		seen[h] = step
	}
}
