package node

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// board is where a role writes down how far it is, and where the API reads it and waits for changes.
type board struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change

	state    string
	problem  string
	latest   *api.VersionInfo
	served   *api.VersionInfo
	path     string
	progress *api.Progress
	history  []api.VersionInfo
	notes    map[string]string // what stands in the way, by what it is about
	offers   map[string]api.Offer

	check     checkInfo
	following // of a rollout
}

func newBoard() *board {
	return &board{
		state: api.StateStarting, changed: make(chan struct{}), notes: make(map[string]string), offers: census(nil, delta.Root{}),
		following: following{waiters: make(map[*api.PullRequest]struct{})},
	}
}

// update changes the board and wakes whoever waits.
func (b *board) update(f func(*board)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b)
	close(b.changed)
	b.changed = make(chan struct{})
}

// look reads the board.
func (b *board) look(f func(*board)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b)
}

func (b *board) setState(state string) {
	b.update(func(b *board) {
		b.state, b.problem = state, ""
		if state != api.StateFetching {
			b.progress = nil
		}
	})
}

func (b *board) fail(err error) {
	b.update(func(b *board) { b.state, b.problem, b.progress = api.StateError, api.Words(err), nil })
}

// serve notes that v is served from path.
func (b *board) serve(v api.VersionInfo, path string) {
	b.update(func(b *board) {
		b.state, b.problem, b.progress = api.StateReady, "", nil
		again := b.served != nil && versionOf(*b.served) == versionOf(v)
		b.served, b.path, b.last = &v, path, versionOf(v)
		if again {
			return
		}
		b.history = append(b.history, v)
		if extra := len(b.history) - api.MaxHistory; extra > 0 {
			b.history = slices.Delete(b.history, 0, extra)
		}
	})
}

// note says what stands in the way of something; without a text nothing does any more. It tells whether that is new.
func (b *board) note(about, text string) (changed bool) {
	b.update(func(b *board) {
		changed = b.notes[about] != text
		if b.notes[about] = text; text == "" {
			delete(b.notes, about)
		}
	})
	return changed
}

// fill copies the board into s.
func (b *board) fill(s *api.Status) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.State, s.Error, s.Path = b.state, b.problem, b.path
	s.Latest, s.Served, s.Progress = copyOf(b.latest), copyOf(b.served), copyOf(b.progress)
	s.History, s.Offer = slices.Clone(b.history), b.offers // which is never changed
	b.fillFollowing(s)
	b.check.fill(s)
	for _, about := range slices.Sorted(maps.Keys(b.notes)) {
		s.Problems = append(s.Problems, b.notes[about])
	}
}

func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// next returns a channel that is closed at the next change of the board.
func (b *board) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// waitFor returns when done does, asked after every change of the board.
func (b *board) waitFor(ctx context.Context, done func(*board) bool) error {
	for {
		b.mu.Lock()
		ok, changed := done(b), b.changed
		b.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func versionOf(v api.VersionInfo) mesh.Version { return mesh.Version{Epoch: v.Epoch, Number: v.Number} }

// versionInfo describes the version of head; m is the manifest of the edge that leads there, nil when none does.
func versionInfo(h mesh.Head, m *delta.Manifest) api.VersionInfo {
	v := api.VersionInfo{Epoch: h.Version.Epoch, Number: h.Version.Number, Root: h.Root, PublishedAt: h.Created}
	if m == nil {
		return v
	}
	v.Elements, v.Changed, v.Dense = m.Elements, m.Changed, m.Dense
	if m.Base != m.Target {
		v.Coded = m.Coded // nothing is sent for a version that changes nothing
	}
	return v
}
