package mesh

import (
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

const (
	recallFor   = 10 * time.Minute // then a note is forgotten, and the same thing is said again
	maxRecalled = 256              // notes of one recall
	maxNote     = 256              // bytes of a note's text
)

// recall remembers what was noticed about whom, so that the log says it once and a status page can list it. Peers
// choose what goes in: once it is full, what is new goes unsaid until something old is forgotten.
type recall struct {
	limit int

	mu    sync.Mutex // guards notes
	notes map[topic]note
}

type topic struct {
	peer  peer.ID
	about string
}

type note struct {
	said, seen time.Time
	text       string
}

func newRecall(limit int) *recall { return &recall{limit: limit, notes: make(map[topic]note)} }

// news notes what was seen and tells whether it is to be said: it was not for recallFor.
func (r *recall) news(t topic, text string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, known := r.notes[t]
	if !known && !r.room(now) {
		return false
	}
	say := !known || now.Sub(n.said) >= recallFor
	if say {
		n.said = now
	}
	n.seen, n.text = now, clip(text)
	r.notes[t] = n
	return say
}

// room makes some for one more note if it can. It needs the lock.
func (r *recall) room(now time.Time) bool {
	if len(r.notes) < r.limit {
		return true
	}
	for t, n := range r.notes {
		if now.Sub(n.seen) >= recallFor {
			delete(r.notes, t)
		}
	}
	return len(r.notes) < r.limit
}

// recent returns what was seen in the last recallFor, in no order.
func (r *recall) recent(now time.Time) []Problem {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []Problem
	for t, n := range r.notes {
		if now.Sub(n.seen) < recallFor {
			found = append(found, Problem{Peer: t.peer, Text: n.text})
		}
	}
	return found
}

// clip shortens what is too long for a note.
func clip(text string) string {
	if len(text) > maxNote {
		text = text[:maxNote-3] + "..."
	}
	return strings.ToValidUTF8(text, "?")
}
