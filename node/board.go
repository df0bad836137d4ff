package node

import (
	"context"
	"fmt"
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
}

func newBoard() *board {
	return &board{state: api.StateStarting, changed: make(chan struct{})}
}

// update changes the board and wakes whoever waits.
func (b *board) update(f func(*board)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b)
	close(b.changed)
	b.changed = make(chan struct{})
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
	b.update(func(b *board) { b.state, b.problem, b.progress = api.StateError, err.Error(), nil })
}

// serve notes that v is served from path.
func (b *board) serve(v api.VersionInfo, path string) {
	b.update(func(b *board) {
		b.state, b.problem, b.progress = api.StateReady, "", nil
		again := b.served != nil && versionOf(*b.served) == versionOf(v)
		b.served, b.path = &v, path
		if again {
			return
		}
		b.history = append(b.history, v)
		if extra := len(b.history) - api.MaxHistory; extra > 0 {
			b.history = slices.Delete(b.history, 0, extra)
		}
	})
}

// fill copies the board into s.
func (b *board) fill(s *api.Status) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.State, s.Error, s.Path = b.state, b.problem, b.path
	s.Latest, s.Served, s.Progress = copyOf(b.latest), copyOf(b.served), copyOf(b.progress)
	s.History = slices.Clone(b.history)
}

func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
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

// pull waits until a version of at least the number asked for is served; without a number, until the newest known is.
func (b *board) pull(ctx context.Context, r api.PullRequest) (api.PullResult, error) {
	var result api.PullResult
	err := b.waitFor(ctx, func(b *board) bool {
		if b.served == nil || versionOf(*b.served).Compare(b.asked(r)) < 0 {
			return false
		}
		result = api.PullResult{Version: *b.served, Path: b.path}
		return true
	})
	if err != nil {
		return result, fmt.Errorf("%s is not ready here (%s): %w", wanted(r), b.news(), err)
	}
	return result, nil
}

// asked returns the least version that r is content with. A step of an older epoch is another state than the same step
// of this one: trainers go back.
func (b *board) asked(r api.PullRequest) mesh.Version {
	var v mesh.Version
	if b.latest != nil {
		v = versionOf(*b.latest)
	}
	if r.Number != nil {
		v.Number = *r.Number
	}
	if r.Epoch != nil {
		v.Epoch = *r.Epoch
	}
	return v
}

func wanted(r api.PullRequest) string {
	if r.Number == nil {
		return "the newest version"
	}
	return fmt.Sprintf("version %d", *r.Number)
}

// news says in a few words how far the node is.
func (b *board) news() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	served, latest := "nothing served", "no version heard of"
	if b.served != nil {
		served = fmt.Sprintf("%d served", b.served.Number)
	}
	if b.latest != nil {
		latest = fmt.Sprintf("%d the newest heard of", b.latest.Number)
	}
	return served + ", " + latest
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
