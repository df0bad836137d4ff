package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/node/api"
)

// tornSize is large enough that reading it takes longer than noticing that it is read. The race detector makes that
// longer anyway.
func tornSize() int64 {
	if testing.Short() {
		return 8_000_000
	}
	return 48_000_000
}

// whileWriting calls tear as soon as a node writes a state, unless done is closed before. A draft is there all the time
// that its source is read.
func whileWriting(h *host, done <-chan struct{}, tear func()) {
	for {
		if found, _ := filepath.Glob(filepath.Join(h.data, "slots", "*", "*.partial")); found != nil {
			tear()
			return
		}
		select {
		case <-done:
			return
		case <-time.After(100 * time.Microsecond):
		}
	}
}

// tries is how often a test may come too late to disturb a node.
const tries = 20

// TestCheckpointIsTornWhilePublished shortens or overwrites a checkpoint while the trainer reads it. Either the whole of
// it is published or nothing, and the node lives on.
func TestCheckpointIsTornWhilePublished(t *testing.T) {
	t.Parallel()
	states := steps(t, tornSize(), 2)
	f := newFleet(t, states[0], 1)
	f.start()
	out, next := states[1], states[2]
	f.follow(f.publish(out).VersionInfo, out, f.rollouts()...)
	for how, tear := range map[string]func(path string) error{
		"truncated":   func(path string) error { return os.Truncate(path, tornSize()/2) },
		"emptied":     func(path string) error { return os.Truncate(path, 0) },
		"overwritten": func(path string) error { return overwrite(path, tornSize()*3/4) },
	} {
		refused := false
		for try := 0; try < tries && !refused; try++ {
			path := copyOf(t, next)
			v, err := f.publishTorn(path, tear)
			if refused = err != nil; refused {
				wantTorn(t, how, path, err)
				f.same(out, f.rollouts()...)
			} else { // all was read before
				out, next = next, out
				f.follow(v.VersionInfo, out, f.rollouts()...)
			}
		}
		if !refused {
			t.Errorf("%s: no publish met it", how)
		}
	}
	f.follow(f.publish(next).VersionInfo, next, f.rollouts()...)
}

// publishTorn publishes the checkpoint at path and tears it meanwhile.
func (f *fleet) publishTorn(path string, tear func(path string) error) (v api.PublishResult, err error) {
	f.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		v, err = f.trainer.client.Publish(f.t.Context(), api.PublishRequest{Path: path})
	}()
	whileWriting(f.trainer, done, func() {
		if err := tear(path); err != nil {
			f.t.Error(err)
		}
	})
	<-done
	return v, err
}

// wantTorn wants an error that names the checkpoint and says what to do.
func wantTorn(t *testing.T, how, path string, err error) {
	t.Helper()
	var e *api.Error
	if !errors.As(err, &e) || e.Hint == "" || e.Code == http.StatusInternalServerError {
		t.Errorf("%s: no hint with %#v", how, err)
	}
	wantText(t, err.Error(), "nothing published")
	wantText(t, err.Error(), path)
}

// overwrite puts other bytes into a file, where they are.
func overwrite(path string, at int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte("other bytes than those that were there"), at)
	return errors.Join(err, f.Close())
}

// TestBaseIsTornWhileRead shortens the base of a rollout while version 1 is built from it.
func TestBaseIsTornWhileRead(t *testing.T) {
	t.Parallel()
	for range tries {
		if baseIsTorn(t) {
			return
		}
	}
	t.Error("the base was always read before it could be disturbed")
}

// baseIsTorn tells whether the rollout met the end of its base.
func baseIsTorn(t *testing.T) bool {
	t.Helper()
	states := steps(t, tornSize(), 2)
	f := newFleet(t, states[0], 2)
	sick, other := f.rollouts()[0], f.rollouts()[1]
	sick.base = copyOf(t, states[0])
	f.start()
	f.follow(*f.trainer.newest(), states[0], f.rollouts()...)
	done := make(chan struct{})
	torn := make(chan error, 1)
	go func() {
		var err error
		whileWriting(sick, done, func() { err = os.Truncate(sick.base, tornSize()/3) })
		torn <- err
	}()
	v := f.publish(states[1])
	f.follow(v.VersionInfo, states[1], other)
	s := sick.await("come to an end with its base", func(s api.Status) bool {
		return s.State == api.StateError || s.Served != nil && s.Served.Number == v.Number
	})
	close(done)
	if err := <-torn; err != nil {
		t.Error(err)
	}
	if s.Served != nil && s.Served.Number == v.Number { // all was read before
		f.same(states[1], sick)
		return false
	}
	for _, want := range []string{"nothing on offer leads", "--full", "base:"} {
		wantText(t, s.Error, want)
	}
	full, err := f.trainer.client.Publish(t.Context(), api.PublishRequest{Path: states[2], Full: true}) // as it says
	if err != nil {
		t.Fatal(err)
	}
	f.follow(full.VersionInfo, states[2], f.rollouts()...)
	return true
}
