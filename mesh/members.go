package mesh

import (
	"slices"
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Members is the allow-list of peers. It is safe for concurrent use and may change while the node runs.
type Members struct {
	// Open lets everyone in while the list is empty. Set it before use, and only where the operator asked for it.
	Open bool

	turned *recall    // who was turned away at the door
	knocks chan knock // those of them that nobody has said yet

	mu      sync.RWMutex // guards what follows
	ids     map[peer.ID]struct{}
	changed chan struct{} // closed and replaced by Set
}

// NewMembers returns a list of ids.
func NewMembers(ids ...peer.ID) *Members {
	return &Members{
		turned: newRecall(maxRecalled), knocks: make(chan knock, maxRecalled),
		ids: setOf(ids), changed: make(chan struct{}),
	}
}

// Set replaces the list. Whoever watches Changed disconnects the peers that it dropped.
func (m *Members) Set(ids []peer.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ids = setOf(ids)
	close(m.changed)
	m.changed = make(chan struct{})
}

// Allowed tells whether id may connect.
func (m *Members) Allowed(id peer.ID) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if len(m.ids) == 0 {
		return m.Open
	}
	_, ok := m.ids[id]
	return ok
}

// List returns the listed peers in the order of their IDs.
func (m *Members) List() []peer.ID {
	m.mu.RLock()
	defer m.mu.RUnlock()
	ids := make([]peer.ID, 0, len(m.ids))
	for id := range m.ids {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Changed returns a channel that is closed by the next Set.
func (m *Members) Changed() <-chan struct{} {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.changed
}

func setOf(ids []peer.ID) map[peer.ID]struct{} {
	set := make(map[peer.ID]struct{}, len(ids))
	for _, id := range ids {
		set[id] = struct{}{}
	}
	return set
}
