package sim

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/sparsecast/sparsecast/node/files/faults"
)

// tap sees every call of a box's nodes to its disk before it happens. It makes calls fail, ends the caller in the midst
// of things, and has what is served looked at as soon as it may have changed.
type tap struct {
	b *box

	mu     sync.Mutex // guards what follows
	armed  []*fuse
	struck *stop // a fuse that has burnt down and was not dealt with yet
	ails   []*ail
	stale  bool // what is served may have been changed by the call before
	signed bool // so may what is on offer
	chance *rand.Rand
}

// fuse is a stop that waits for its call.
type fuse struct {
	stop *stop
	lit  bool
	left int
}

// yieldOneIn is how seldom others may come in between two calls of one goroutine.
const yieldOneIn = 8

func (t *tap) arm(d *stop) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = append(t.armed, &fuse{d, d.Since == "", d.AtCall})
}

// ail makes calls fail from now on.
func (t *tap) ail(a ail) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ails = append(t.ails, &a)
}

// ease takes back all that was still to come.
func (t *tap) ease() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed, t.ails = nil, nil
}

// fired returns the stop whose fuse has burnt down, once.
func (t *tap) fired() *stop {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.struck
	t.struck = nil
	return d
}

// on returns the hook for the disk's calls of one life.
func (t *tap) on(l *life) func(faults.Op) error {
	return func(op faults.Op) error {
		served, offered, yield := t.before(op)
		if served {
			t.b.lookAtCurrent()
		}
		if offered {
			t.b.remember() // it may be on offer for no more than an instant
			t.b.noteOpening()
		}
		if offered && !t.b.harmed.Load() && !t.b.troubled.Load() {
			t.b.lookAtOffer()
		}
		if yield {
			runtime.Gosched()
		}
		if d := t.burn(op); d != nil {
			l.sever(d.How)
			t.b.w.wake()
			return faults.ErrKilled
		}
		return t.fault(op)
	}
}

// before tells what the call before op may have changed, and whether others are to come in between.
func (t *tap) before(op faults.Op) (served, offered, yield bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	served, offered = t.stale, t.signed
	t.signed = t.b.trainer() && op.Writes && strings.HasSuffix(op.Path, "/catalogue.signed")
	t.stale = op.Writes && (strings.Contains(op.Path, "/slots/") || strings.HasPrefix(op.Path, dataDir+"/.") ||
		strings.HasPrefix(op.Path, dataDir+"/current"))
	return served, offered, t.chance.IntN(yieldOneIn) == 0
}

// burn counts a call, which may light others, and returns the stop that it sets off.
func (t *tap) burn(op faults.Op) *stop {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.struck != nil {
		return nil // it is happening already
	}
	for i, f := range t.armed {
		if !f.lit {
			f.lit = op.Call == "rename" && strings.Contains(op.Path, f.stop.Since)
			continue
		}
		if f.left--; f.left <= 0 {
			t.armed = append(t.armed[:i:i], t.armed[i+1:]...)
			t.struck = f.stop
			return f.stop
		}
	}
	return nil
}

// fault is the error that a call gets.
func (t *tap) fault(op faults.Op) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.ails {
		switch {
		case a.Call != op.Call || a.Times == 0:
		case a.Skip > 0:
			a.Skip--
		default:
			a.Times--
			t.b.troubled.Store(true)
			t.b.shake()
			if a.Full {
				return syscall.ENOSPC
			}
			return syscall.EIO
		}
	}
	return nil
}
