package delta

import (
	"bytes"
	"context"
	"testing"

	"pgregory.net/rapid"
)

// Bundled states are one state: coding them and applying the code to bundled sinks gives each its own.
func TestBundleProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCut(t)
		whole, _ := randomState(newRand(t), s, 0)
		states, sinks, got := map[string]State{}, map[string]Sink{}, map[string]*Memory{}
		for i, r := range s.States() {
			own, err := s.StateSchema(i)
			if err != nil {
				t.Fatal(err)
			}
			m := &Memory{schema: own, tensors: whole.tensors[r.First : r.First+r.Count]}
			states[r.Name], got[r.Name] = m, NewMemory(own)
			sinks[r.Name] = got[r.Name]
		}
		bundle, err := NewBundle(s, states)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := RootOf(context.Background(), whole, nil)
		if root, err := RootOf(context.Background(), bundle, nil); err != nil || root != want {
			t.Fatalf("root %s, want %s (%v)", root, want, err)
		}
		sink, err := NewBundleSink(s, sinks)
		if err != nil {
			t.Fatal(err)
		}
		e := writeEdge(t, &memorySpool{}, nil, whole)
		if _, err := ApplyEdge(context.Background(), e.Manifest, e.chunk, s, nil, sink, DecodeOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, r := range s.States() {
			for i := range r.Count {
				if !bytes.Equal(got[r.Name].tensors[i], whole.tensors[r.First+i]) {
					t.Fatalf("tensor %d of state %q differs", i, r.Name)
				}
			}
		}
	})
}

func TestBundleRefusals(t *testing.T) {
	old, _ := goldenStates(t)
	s := old.schema
	draft, _ := s.StateSchema(0)
	policy, _ := s.StateSchema(1)
	for name, states := range map[string]map[string]State{
		"a state missing":   {"draft": NewMemory(draft)},
		"another name":      {"draft": NewMemory(draft), "adapter": NewMemory(policy)},
		"one too many":      {"draft": NewMemory(draft), "policy": NewMemory(policy), "adapter": NewMemory(policy)},
		"tensors exchanged": {"draft": NewMemory(policy), "policy": NewMemory(draft)},
	} {
		if _, err := NewBundle(s, states); err == nil {
			t.Errorf("%s: accepted", name)
		}
		sinks := map[string]Sink{}
		for n, st := range states {
			sinks[n] = st.(*Memory)
		}
		if _, err := NewBundleSink(s, sinks); err == nil && name != "tensors exchanged" {
			t.Errorf("%s: accepted as sinks", name)
		}
	}
}
