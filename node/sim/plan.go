package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
)

// Plan is everything that is decided before a run begins: who there is, and what is going to happen to them.
type Plan struct {
	Seed  uint64
	Boxes []BoxPlan
	Keep  int           // versions on offer
	Back  int           // reverse edges on offer
	Bytes string        // on offer, 0 for no limit
	Full  string        // anchors: auto, always or never
	Poll  time.Duration // for news
	Near  Link          // inside a cluster
	Far   Link          // between clusters
	Form  form          // of the weights
	Steps []Step        // by time
	Heal  time.Duration // when all faults end
}

// BoxPlan describes one machine.
type BoxPlan struct {
	Name     string
	Role     mesh.Role
	Cluster  string
	Base     bool          // has the base checkpoint
	BaseFile bool          // as one file instead of a directory
	Lag      int           // numbers that it may stay behind
	Manual   bool          // a user confirms what the engine has loaded
	OneSlot  bool          // it has one copy of the weights, which is changed where it lies
	Key      int           // machines with one number have one identity
	First    time.Duration // when its node starts for the first time
}

// Step is one thing that happens.
type Step struct {
	At time.Duration
	Do deed
}

// deed is something that happens to the world. Its text tells a reader all that it does.
type deed interface {
	fmt.Stringer
	do(w *World)
}

// String lists the plan for a reader.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: keep %d (%s bytes), reverse %d, anchors %s, %s, poll every %s, links near %s, far %s\n",
		p.Seed, p.Keep, p.Bytes, p.Back, p.Full, p.Form, p.Poll, p.Near.text(), p.Far.text())
	for _, m := range p.Boxes {
		fmt.Fprintf(&b, "  %s: %s in cluster %s, %s, key %d, from %s on%s\n", m.Name, m.Role, m.Cluster, m.baseText(), m.Key, m.First, m.termsText())
	}
	for i, s := range p.Steps {
		fmt.Fprintf(&b, "  %3d at %7.3f s: %s\n", i, s.At.Seconds(), s.Do)
	}
	fmt.Fprintf(&b, "      at %7.3f s: all faults end\n", p.Heal.Seconds())
	return b.String()
}

func (m *BoxPlan) baseText() string {
	switch {
	case !m.Base:
		return "without the base"
	case m.BaseFile:
		return "base in a file"
	}
	return "base in a directory"
}

func (m *BoxPlan) termsText() (s string) {
	if m.Lag > 0 {
		s = fmt.Sprintf(", at most %d behind", m.Lag)
	}
	if m.Manual {
		s += ", with a user who confirms"
	}
	if m.OneSlot {
		s += ", with one slot"
	}
	return s
}

func (l Link) text() string { return fmt.Sprintf("%s+%s", l.Latency, l.Jitter) }

// without returns the plan without some of its steps, to find out which ones matter.
func (p *Plan) without(dropped []int) *Plan {
	q := *p
	q.Steps = nil
	for i, s := range p.Steps {
		if !slices.Contains(dropped, i) {
			q.Steps = append(q.Steps, s)
		}
	}
	return &q
}

// needsFull tells whether some machine may be where deltas cannot lead to.
func (p *Plan) needsFull() bool {
	if p.Keep < 64 || p.Bytes != "0" || slices.ContainsFunc(p.Boxes, func(m BoxPlan) bool { return !m.Base && m.Role != mesh.RoleRelay }) {
		return true
	}
	return slices.ContainsFunc(p.Steps, func(s Step) bool {
		switch d := s.Do.(type) {
		case *stop:
			return d.Wipe
		case *publish:
			return d.Change == reshape
		case *flip:
			return true
		}
		return false
	})
}
