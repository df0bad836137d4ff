package mesh

import (
	"sync"

	"github.com/ipfs/go-cid"
)

// lacks notes what is being fetched and cannot be, since no connected peer has it. The zero value is ready.
type lacks struct {
	mu     sync.Mutex
	blocks map[cid.Cid]cid.Cid // by what is being fetched, a manifest or another block: one block that nobody has
}

func (l *lacks) note(what, block cid.Cid) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.blocks == nil {
		l.blocks = make(map[cid.Cid]cid.Cid)
	}
	l.blocks[what] = block
}

func (l *lacks) clear(what cid.Cid) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.blocks, what)
}

func (l *lacks) look(what cid.Cid) (block cid.Cid, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	block, ok = l.blocks[what]
	return block, ok
}

// Lacking tells whether a Fetch of the manifest id, or a Block id, waits for a block that no connected peer has at the
// moment, or that those who claim to have it do not deliver. A peer may still bring it: whether to go on is up to the
// caller.
func (x *Exchange) Lacking(id cid.Cid) (block cid.Cid, ok bool) { return x.lacks.look(id) }

// Alone tells whether no peer is connected that could be asked for blocks.
func (x *Exchange) Alone() bool { return len(x.friends()) == 0 }

// Wanted tells whether a connected peer is fetching the manifest id.
func (x *Exchange) Wanted(id cid.Cid) bool {
	for _, l := range x.friends() {
		if l.wants(id) {
			return true
		}
	}
	return false
}

// Relayed tells whether a connected relay is fetching the manifest id: what no peer has may come from there.
func (x *Exchange) Relayed(id cid.Cid) bool {
	for _, l := range x.friends() {
		if l.heardHello().Role == RoleRelay && l.wants(id) {
			return true
		}
	}
	return false
}

// orphan returns a missing chunk that no connected peer claims to hold, with any right to be believed.
func (p *picker) orphan() (chunk int, ok bool) {
	claimed := newBitmap(len(p.at))
	for _, s := range p.peers {
		for k := range claimed {
			claimed[k] |= s.vouches(k)
		}
	}
	for _, i := range p.missing {
		if !claimed.has(i) {
			return i, true
		}
	}
	return 0, false
}

// noteLacking looks whether somebody has what is missing. What nobody has may be here: it was asked for before this
// download began, for an earlier one, and arrived since.
func (f *fetch) noteLacking() {
	for {
		i, ok := f.p.orphan()
		switch {
		case !ok:
			f.x.lacks.clear(f.id)
			return
		case !f.x.store.Has(f.m.Chunks[i]):
			f.x.lacks.note(f.id, f.m.Chunks[i])
			return
		}
		f.hold(i)
	}
}
