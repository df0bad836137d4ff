package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsecast/sparsecast/node/api"
)

// TestBadPublishes hands the trainer what is no checkpoint, in a run that goes on.
func TestBadPublishes(t *testing.T) {
	t.Parallel()
	states := steps(t, 1_000_000, 2)
	f := newFleet(t, states[0], 2)
	f.start()
	v := f.publish(states[1])
	f.follow(v.VersionInfo, states[1], f.rollouts()...)

	half, empty := t.TempDir(), t.TempDir()
	writeShards(t, half, weights{must(filled("a", "BF16", []uint64{8}, "803f"))}, weights{must(filled("b", "BF16", []uint64{8}, "803f"))})
	if err := os.Remove(filepath.Join(half, shardName(2))); err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.safetensors")
	if b, err := os.ReadFile(states[2]); err != nil {
		t.Fatal(err)
	} else if err := os.WriteFile(cut, b[:len(b)-1000], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, want, hint string }{
		{half, shardName(2), "complete"},
		{empty, "no *.safetensors file", "complete"},
		{cut, "the header promises", "complete"},
		{filepath.Join(empty, "nowhere"), "no such file or directory", "on the node's host"},
	} {
		_, err := f.trainer.client.Publish(t.Context(), api.PublishRequest{Path: c.path})
		var e *api.Error
		if !errors.As(err, &e) {
			t.Fatalf("%s was published, or failed without a hint: %v", c.path, err)
		}
		if e.Code != http.StatusUnprocessableEntity || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s: code %d, hint %q", c.path, e.Code, e.Hint)
		}
		for _, want := range []string{"nothing published", c.path, c.want} {
			wantText(t, e.Message, want)
		}
	}
	for _, h := range f.hosts {
		if s := h.now(); s.Latest.Number != v.Number || s.State != api.StateReady || s.Error != "" {
			t.Errorf("%s was disturbed: %d, %s %s", h.name, s.Latest.Number, s.State, s.Error)
		}
	}
	f.same(states[1], f.rollouts()...)

	next := f.publish(states[2])
	if next.Number != v.Number+1 {
		t.Errorf("version %d follows %d", next.Number, v.Number)
	}
	f.follow(next.VersionInfo, states[2], f.rollouts()...)
}

func wantText(t *testing.T, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("%q does not say %q", text, want)
	}
}
