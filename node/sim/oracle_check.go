package sim

import (
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// What must hold, as a failure names it.
const (
	servesPublished = "what is served is a state that was published, to the bit"
	saysWhatItHolds = "a node serves the version that it says"
	neverGoesBack   = "the served version never goes back"
	oneRoot         = "a version has one root, and it was handed in"
	keepsWhatActed  = "what was acted on is on the disk"
	keepsItsOffer   = "all blocks of the edges that a trainer offers are on its disk"
	keepsTheWays    = "while a trainer runs, the ways for newcomers stay on offer"
	waitsForTheSlow = "what left a trainer's offer with the newest version is still on its disk"
	waitsForConfirm = "what an engine has confirmed stays in its slot until it confirms something newer"
	converges       = "soon after all faults have ended everybody serves the newest version"
	tidies          = "in the end every stored block belongs to an edge on offer"
	boundedDisk     = "the disk does not fill up"
	staysPinned     = "a pinned node stays at the version that it was pinned to"
	freezes         = "who has heard of two roots of one version says so, and has proof"
	staysFrozen     = "who has proof of two roots of one version follows that epoch no more"
	findsHarm       = "a check tells which copies of the weights are damaged, and no others"
	stopsForGood    = "a trainer that says it has stopped publishes nothing"
	endsByItself    = "a node ends by itself only for a fault of its disk"
	endsWhenAsked   = "a node ends when asked, without an error"
)

// memory is what the oracle remembers of a box.
type memory struct {
	unsure  atomic.Bool      // the power was lost and no node has looked at the slots since
	mu      sync.Mutex       // guards what follows
	served  mesh.VersionRoot // what was served last, zero for nothing
	found   delta.Root       // what an engine found last in a slot of the node's own
	pinned  bool             // by a user, or maybe so
	fixed   *uint64          // to that number for certain, nil for no or maybe
	short   bool             // of space
	solid   bool             // what an engine found last is still there: nothing was done since that could have harmed it
	acted   mesh.Version     // the newest that the node has been seen to know
	frozen  mesh.VersionRoot // the newest when proof against its epoch was seen first
	epoch   uint64           // of the catalogue of a trainer
	excuses []excuse
}

// excuse is damage that nobody can help: of the state that was served already when the bit flipped.
type excuse struct {
	sum    sum
	broken bool             // it cannot even be read
	served delta.Root       // by what was there before
	said   mesh.VersionRoot // to be served, by the node: it may have died before it said the above
	base   bool
}

// excused tells whether what was found where an engine reads is harm that we did: to what was served already, or to a
// base that is served for want of anything better.
func (b *box) excused(s sum, err error, orBase bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.excuses {
		if (e.broken && err != nil || !e.broken && err == nil && e.sum == s) && (e.served == b.served.Root || e.said == b.served || e.base && orBase) {
			return true
		}
	}
	return false
}

// knew notes a version that the node has acted on, and returns the newest.
func (b *box) knew(v mesh.Version) mesh.Version {
	b.mu.Lock()
	defer b.mu.Unlock()
	if v.Compare(b.acted) > 0 {
		b.acted = v
	}
	return b.acted
}

// serves notes what is served now, and returns what was before.
func (b *box) serves(v mesh.VersionRoot) (before mesh.VersionRoot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, b.served = b.served, v
	return before
}

// finds notes what an engine finds now, and returns what it found before.
func (b *box) finds(root delta.Root) (before delta.Root) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, b.found = b.found, root
	b.solid = !b.short
	return before
}

// forget is for an emptied data directory.
func (b *box) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loaded = engine{}
	b.served, b.found, b.acted, b.excuses, b.pinned = mesh.VersionRoot{}, delta.Root{}, mesh.Version{}, nil, false
	b.fixed, b.solid, b.frozen = nil, false, mesh.VersionRoot{}
}

// shake notes that something was done to the disk that may have cost the node what it serves.
func (b *box) shake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.solid = false
}

// squeeze notes that the disk is all but full, or no longer.
func (b *box) squeeze(short bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.short, b.solid = short, false
}

// look checks all that can be seen of a box at an instant in which nothing moves.
func (b *box) look() {
	b.lookAtCurrent()
	b.lookAtLedger()
	if n := b.alive(); n != nil {
		b.lookAtStatus(n.Status(b.w.ctx))
	}
	b.lookAtLoaded()
	if b.trainer() && !b.harmed.Load() {
		b.lookAtStand()
	}
	if used := b.disk.Used(); used > diskBound {
		b.w.violate(boundedDisk, "%s: %d bytes, more than %d", b.name(), used, diskBound)
	}
}

// diskBound is more than a box may ever need: some hundred small versions.
const diskBound = 16 << 20

// lookAtCurrent reads what an engine would read. After a loss of power the link is believed again only once the node
// has looked at the slots.
func (b *box) lookAtCurrent() {
	if b.unsure.Load() {
		return
	}
	dir := b.current()
	if dir == "" {
		b.retreat("nothing", delta.Root{})
		return
	}
	s, err := b.engine(dir)
	root, known := b.w.oracle.rootOf(s)
	switch {
	case b.excused(s, err, true):
	case err != nil:
		b.w.violate(servesPublished, "%s: current leads to %s, which cannot be loaded: %v", b.name(), dir, err)
	case !known:
		b.w.violate(servesPublished, "%s: current leads to %s, which holds no state that was published (sum %x)", b.name(), dir, s[:6])
	case dir == b.basePath("") || strings.HasSuffix(dir, "/slots/base"): // for want of anything better
		b.retreat("the base", root)
	default:
		b.advance(root)
	}
}

// retreat checks that an engine finds nothing, or just the base, only where there never was anything better, or something
// has happened to it. The base may have become the state of a later version, too.
func (b *box) retreat(to string, root delta.Root) {
	b.mu.Lock()
	b.solid = b.solid && !b.plan.OneSlot // it is being changed, and until that is done there may be nothing better
	found, solid, led := b.found, b.solid, b.pinned
	b.mu.Unlock()
	if led && !root.IsZero() { // a version that is the base, and what comes after is held against it
		b.finds(root)
	}
	if led || !solid {
		return
	}
	b.w.catchUp()
	oldest, _, known := b.w.oracle.span(found)
	_, newest, again := b.w.oracle.span(root)
	if known && !(again && newest.Compare(oldest) >= 0) {
		b.w.violate(neverGoesBack, "%s: an engine finds %s after the state of %s, to which nothing has happened", b.name(), to, oldest)
	}
}

// catchUp looks for versions that are out and that nobody has told of.
func (w *World) catchUp() {
	for _, b := range w.boxes {
		b.lookAtLedger()
	}
}

// advance checks that what an engine finds is no older than what it found before, as far as the state alone can tell.
func (b *box) advance(root delta.Root) {
	before := b.finds(root)
	if before == root || before.IsZero() || b.mayGoBack() {
		return
	}
	b.w.catchUp()
	oldest, _, known := b.w.oracle.span(before)
	_, newest, out := b.w.oracle.span(root)
	if known && out && newest.Compare(oldest) < 0 {
		b.w.violate(neverGoesBack, "%s: an engine finds the state of %s after that of %s", b.name(), newest, oldest)
	}
}

// lookAtLedger checks the head that is kept.
func (b *box) lookAtLedger() {
	h, ok, err := b.head()
	switch {
	case err != nil:
		b.w.violate(keepsWhatActed, "%s: the head on disk is unreadable: %v", b.name(), err)
	case ok:
		if err := b.w.oracle.see(h.Version, h.Root); err != nil {
			b.w.violate(oneRoot, "%s: head on disk: %v", b.name(), err)
		}
		b.lookAtProof(h)
	}
}

// lookAtStatus checks what a node says of itself.
func (b *box) lookAtStatus(s api.Status) {
	for _, v := range []*api.VersionInfo{s.Latest, s.Served} {
		if v == nil {
			continue
		}
		version := versionOf(v)
		if err := b.w.oracle.see(version, v.Root); err != nil {
			b.w.violate(oneRoot, "%s: status: %v", b.name(), err)
		}
		b.knew(version)
	}
	if s.Served != nil {
		b.lookAtServed(s)
	}
	if s.State != api.StateStarting {
		b.unsure.Store(false)
	}
}

func (b *box) lookAtServed(s api.Status) {
	version := versionOf(s.Served)
	before := b.serves(mesh.VersionRoot{Version: version, Root: s.Served.Root})
	switch {
	case b.mayGoBack():
	case version.Compare(before.Version) < 0:
		b.w.violate(neverGoesBack, "%s: serves %s after %s", b.name(), version, before.Version)
	case version == before.Version && s.Served.Root != before.Root && !b.w.rivals():
		b.w.violate(neverGoesBack, "%s: serves %s with root %s after %s", b.name(), version, s.Served.Root.Short(), before.Root.Short())
	}
	if to := b.pinnedTo(); to != nil && version != before.Version && version.Number != *to {
		b.w.violate(staysPinned, "%s: serves %s after %s, and is pinned to %d", b.name(), version, before.Version, *to)
	}
	if s.Path == "" {
		return // a relay
	}
	got, err := b.engine(s.Path)
	if b.excused(got, err, false) || err == nil && b.w.oracle.holds(s.Served.Root, got) {
		return
	}
	b.w.violate(saysWhatItHolds, "%s: says that %s holds %s with root %s; sum %x, error %v",
		b.name(), s.Path, version, s.Served.Root.Short(), got[:6], err)
}

// lookAtRemains checks the disk after a process or a machine has died.
func (b *box) lookAtRemains() {
	h, ok, err := b.head()
	switch {
	case err != nil:
		b.w.violate(keepsWhatActed, "%s: after its end the head on disk is unreadable: %v", b.name(), err)
	case !ok:
		h.Version = mesh.Version{}
	}
	if acted := b.knew(mesh.Version{}); err == nil && h.Version.Compare(acted) < 0 {
		b.w.violate(keepsWhatActed, "%s: it knew %s, and after its end the disk knows %s", b.name(), acted, h.Version)
	}
	if b.trainer() && !b.harmed.Load() {
		b.lookAtOffer()
	}
}

// lookAtOffer checks that a trainer can deliver what it offers.
func (b *box) lookAtOffer() {
	c, ok, err := b.catalogue()
	if err != nil {
		b.w.violate(keepsItsOffer, "%s: the catalogue on disk is unreadable: %v", b.name(), err)
	}
	if !ok || !b.opened(c.Epoch) {
		return // what was heard of other trainers need not be here
	}
	if h, ok, _ := b.head(); ok && h.Version.Epoch == c.Epoch && h.Edge.Manifest.Defined() {
		c.Edges = append(c.Edges, h.Edge)
	}
	for _, e := range c.Edges {
		if err := b.need(e, make(map[string]bool)); err != nil && b.offers(c) {
			b.w.violate(keepsItsOffer, "%s: edge from %s to %s: %v", b.name(), e.Base.Short(), e.Target.Short(), err)
		}
	}
}

// offers tells whether c is still the catalogue on the disk: the node may go on while we look.
func (b *box) offers(c mesh.Catalogue) bool {
	now, ok, err := b.catalogue()
	return ok && err == nil && now.Epoch == c.Epoch && now.Seq == c.Seq
}

// remember notes what is on offer by the catalogue that a box has, once the faults have ended, and what it keeps for
// itself: edges that leave it stay a while for whoever is slow.
func (b *box) remember() {
	if time.Since(b.w.start) <= b.w.plan.Heal {
		return
	}
	for _, e := range b.waysBack() {
		b.ways[e] = true
	}
	if !b.trainer() {
		return
	}
	c, ok, err := b.catalogue()
	if !ok || err != nil {
		return
	}
	h, _, _ := b.head()
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	for _, e := range append(c.Edges, h.Edge) {
		if e.Manifest.Defined() {
			b.w.offers[e] = true
		}
	}
}

// lookAtStore checks that nothing has piled up: what is there belongs to an edge that was on offer since the faults
// have ended.
func (b *box) lookAtStore() {
	needed := make(map[string]bool)
	if h, ok, _ := b.head(); ok {
		needed[h.Schema.String()] = true
	}
	for e := range b.w.offers {
		_ = b.need(e, needed) // it need not be here
	}
	for e := range b.ways {
		_ = b.need(e, needed)
	}
	for _, id := range b.blocks() {
		if !needed[id] {
			b.w.violate(tidies, "%s: block %s is kept and on no offer", b.name(), id)
		}
	}
}

// lookForLeftovers checks that a restart has removed what crashes and failing calls had left half-written.
func (b *box) lookForLeftovers() {
	for _, f := range b.files("") {
		if base := path.Base(f); strings.HasPrefix(base, ".tmp-") || strings.HasSuffix(base, ".partial") {
			b.w.violate(tidies, "%s: %s was left behind", b.name(), f)
		}
	}
}

func versionOf(v *api.VersionInfo) mesh.Version {
	return mesh.Version{Epoch: v.Epoch, Number: v.Number}
}
