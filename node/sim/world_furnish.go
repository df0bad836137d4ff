package sim

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"strings"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/sparsecast/sparsecast/mesh"
)

// keyOf makes the same identity of the same numbers.
func keyOf(seed uint64, i int) (crypto.PrivKey, peer.ID) {
	rng := stream(seed, fmt.Sprint("key", i))
	key, _, err := crypto.GenerateEd25519Key(bytesOf{rng})
	if err != nil {
		panic(err) // the source does not fail
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		panic(err)
	}
	return key, id
}

// bytesOf reads random bytes.
type bytesOf struct{ rng *rand.Rand }

func (b bytesOf) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b.rng.Uint32())
	}
	return len(p), nil
}

// furnish puts on a disk what an operator does before the first start.
func (b *box) furnish() {
	key, err := crypto.MarshalPrivateKey(b.key)
	if err != nil {
		panic(err)
	}
	var peers, bootstrap strings.Builder
	listed := make(map[peer.ID]bool)
	for _, o := range b.w.boxes {
		if !listed[o.id] {
			fmt.Fprintln(&peers, o.id)
		}
		listed[o.id] = true
		if o != b && o.plan.Role != mesh.RoleRollout {
			fmt.Fprintf(&bootstrap, "%s/p2p/%s\n", o.addr(), o.id)
		}
	}
	b.put(keyFile, []byte(base64.StdEncoding.EncodeToString(key)+"\n"))
	b.put(peersFile, []byte(peers.String()))
	b.put(bootstrapFile, []byte(bootstrap.String()))
	b.layBase()
}

// layBase puts the base checkpoint where it belongs, or where it belonged before it was damaged.
func (b *box) layBase() {
	if !b.plan.Base {
		return
	}
	for state, file := range b.w.base.files() {
		b.put(path.Join(baseDir, state, weightsFile), file)
		b.put(path.Join(baseDir, state, "config.json"), []byte("{}\n"))
	}
}

func (b *box) put(path string, data []byte) {
	if err := b.disk.WriteFile(path, data, 0o600); err != nil {
		b.w.violate(boundedDisk, "%s: prepare %s: %v", b.name(), path, err)
	}
}

// wipe empties the data directory.
func (b *box) wipe() {
	b.w.note("%s: its data directory is emptied", b.name())
	m := b.disk.Mount()
	defer m.Kill()
	if err := m.RemoveAll(dataDir); err != nil {
		b.w.violate(boundedDisk, "%s: empty the data directory: %v", b.name(), err)
	}
	b.forget()
	b.program.forget()
	b.layBase()
}

// fill leaves so many bytes of the disk.
func (b *box) fill(left int64) {
	b.troubled.Store(true)
	b.squeeze(true)
	b.disk.SetLimit(b.disk.Used() + left)
}

// empty takes fill back.
func (b *box) empty() {
	b.disk.SetLimit(0)
	b.squeeze(false)
}

// flip turns a bit over in one of the files that the deed names, if there is any.
func (b *box) flip(d *flip) {
	f := b.target(d)
	if f == "" || b.life == nil { // what was damaged before the first start is what was published
		return
	}
	data, err := b.disk.ReadFile(f)
	if err != nil || len(data) == 0 {
		return
	}
	before, _ := b.engine(b.home(f))
	bit := int64(d.Where>>8) % int64(8*len(data))
	if err := b.disk.FlipBit(f, bit); err != nil {
		b.w.violate(boundedDisk, "%s: flip: %v", b.name(), err)
	}
	b.troubled.Store(true)
	b.harmed.Store(true)
	b.shake()
	b.w.note("%s: bit %d of %s", b.name(), bit, f)
	if d.What == liveSlot || d.What == theBase || b.alive() == nil || b.live() == "" { // what is served next may be the idle slot
		b.excuse(b.home(f), before, d.What == theBase)
	}
}

// scribble writes into the slot that is served, as whoever does not know what it is. No process is there to see it, but the
// next one can tell by the time of the change.
func (b *box) scribble(where uint64) {
	f := pickOf(b.weightsIn(b.current(), true), where)
	data, err := b.disk.ReadFile(f)
	if f == "" || err != nil || len(data) == 0 {
		return
	}
	m := b.disk.Mount()
	defer m.Kill()
	open, err := m.OpenFile(f, os.O_RDWR, 0)
	if err != nil {
		return
	}
	at := where >> 8 % uint64(len(data))
	if _, err := open.WriteAt([]byte{data[at] ^ 1}, int64(at)); err != nil { //nolint:gosec // an offset in a small file
		return
	}
	b.harmed.Store(true)
	b.unsure.Store(true)
	b.shake()
	b.w.note("%s: somebody wrote to %s", b.name(), f)
}

// excuse lets the bytes that are in a directory now be served: for as long as nothing newer is, or where the base
// is served for want of anything better. What was there before tells what is served: the node may have died before it
// said so.
func (b *box) excuse(dir string, before sum, base bool) {
	s, err := b.engine(dir)
	root, known := b.w.oracle.rootOf(before)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !known || base && !b.served.Root.IsZero() { // of what is served from a base nobody may have looked yet
		root = b.served.Root
	}
	b.excuses = append(b.excuses, excuse{s, err != nil, root, b.served, base})
}

// live returns the directory that is served, empty for none.
func (b *box) live() string {
	live := b.current()
	if n := b.alive(); n != nil && (b.trainer() || live == "") { // the link may be gone while a slot is repaired
		live = n.Status(b.w.ctx).Path
	}
	return live
}

func (b *box) target(d *flip) string {
	live := b.live()
	switch d.What {
	case aBlock:
		if ids := b.blocks(); len(ids) > 0 {
			return b.files(ids[d.Where%uint64(len(ids))])[0]
		}
	case theBase:
		if b.plan.Base {
			return path.Join(baseDir, pickOf(b.w.plan.Form.names(), d.Where), weightsFile)
		}
	case liveSlot:
		return pickOf(b.weightsIn(live, true), d.Where)
	case idleSlot:
		return pickOf(b.weightsIn(live, false), d.Where)
	}
	return ""
}

// weightsIn returns the files with the weights of the node's own slot that is live, or of the other.
func (b *box) weightsIn(live string, same bool) (list []string) {
	for _, f := range b.files(weightsFile) {
		if strings.Contains(f, "/slots/") && !strings.Contains(f, "/slots/base/") && (b.home(f) == live) == same {
			list = append(list, f)
		}
	}
	return list
}

// pickOf returns one of a list, empty when there is none.
func pickOf(list []string, which uint64) string {
	if len(list) == 0 {
		return ""
	}
	return list[which%uint64(len(list))]
}
