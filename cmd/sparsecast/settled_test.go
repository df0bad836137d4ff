package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// settled is a run in which everybody serves version 1: a trainer, a relay and rollouts. States are the base, version 1
// and more to come.
type settled struct {
	*fleet
	relay  *host
	states []string
	next   int // the state to publish next
}

// newSettled prepares such a run, with a state of its own for every host that prepare changes, and starts it.
func newSettled(t *testing.T, size int64, updates, rollouts int, prepare func(s *settled)) *settled {
	t.Helper()
	states := steps(t, size, updates)
	s := &settled{fleet: newFleet(t, states[0], rollouts), states: states, next: 1}
	s.relay = s.add("relay", mesh.RoleRelay, s.trainer)
	if prepare != nil {
		prepare(s)
	}
	s.start()
	s.follow(s.publishNext(), s.newest(), s.rollouts()...)
	s.relayed(s.trainer.newest())
	return s
}

// newest is the state that was published last.
func (s *settled) newest() string { return s.states[s.next-1] }

// publishNext publishes the next state, which must work.
func (s *settled) publishNext() api.VersionInfo {
	s.t.Helper()
	v := s.publish(s.states[s.next])
	s.next++
	return v.VersionInfo
}

// relayed waits until the relay holds what leads to v.
func (s *settled) relayed(v *api.VersionInfo) {
	s.t.Helper()
	s.relay.await("hold the newest version", func(st api.Status) bool { return st.Served != nil && st.Served.Root == v.Root })
}

// goOn publishes one more version and wants it everywhere.
func (s *settled) goOn() {
	s.t.Helper()
	v := s.publishNext()
	s.follow(v, s.newest(), s.rollouts()...)
	s.relayed(&v)
}

// troubled waits until a host says all of that in its status, and wants it to serve what it served before.
func (s *settled) troubled(h *host, before string, says ...string) {
	s.t.Helper()
	var text string
	h.await("say what is wrong", func(st api.Status) bool {
		text = st.Error
		for _, p := range st.Problems {
			text += "\n" + p
		}
		return containsAll(text, says)
	})
	if h.role == mesh.RoleRollout {
		s.same(before, h)
	}
}

// refusesToStart wants a node that ends at once and says all of that.
func refusesToStart(t *testing.T, h *host, says ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sparsecast", "node", "--config", h.config()).CombinedOutput()
	if err == nil {
		t.Fatalf("%s started", h.name)
	}
	for _, want := range says {
		wantText(t, string(out), want)
	}
}

func containsAll(text string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}
