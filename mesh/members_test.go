package mesh

import "testing"

func TestMembers(t *testing.T) {
	a, b := idOf(testKey(1)), idOf(testKey(2))
	m := NewMembers(a)
	if !m.Allowed(a) || m.Allowed(b) {
		t.Error("the list is not what it was made of")
	}
	changed := m.Changed()
	m.Set(nil)
	select {
	case <-changed:
	default:
		t.Error("a change goes unnoticed")
	}
	if m.Allowed(a) {
		t.Error("an empty list lets people in")
	}
	m.Open = true
	if !m.Allowed(b) {
		t.Error("an open list keeps people out")
	}
	m.Set(m.List())
	m.Set(append(m.List(), b))
	if m.Allowed(a) || !m.Allowed(b) || len(m.List()) != 1 {
		t.Error("an open list with entries lets others in")
	}
}
