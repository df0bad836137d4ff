package faults

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// PowerLoss ends every process and keeps of what was not synced only a part that rng chooses; see the package's
// comment. The next mount has another boot ID.
func (d *Disk) PowerLoss(rng *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	journal := rng.IntN(3) == 0
	for _, m := range d.mounts {
		m.kill()
	}
	d.mounts = nil
	d.loseNames(rng, journal)
	d.used = 0
	d.restart(rng, d.root, journal)
	d.boots++
}

// everything is the mood in which nothing is lost.
func everything() bool { return true }

// mood tells how much of a kind of changes is kept: nothing, everything, or each by the toss of a coin. Coins alone
// would hardly ever lose or keep all.
func mood(rng *rand.Rand) (kept func() bool) {
	switch rng.IntN(3) {
	case 0:
		return func() bool { return false }
	case 1:
		return everything
	default:
		return func() bool { return rng.IntN(2) == 0 }
	}
}

// loseNames settles some of the changes of names, each only with the earlier ones of its names.
func (d *Disk) loseNames(rng *rand.Rand, journal bool) {
	type place struct {
		dir  *inode
		name string
	}
	kept, lost := mood(rng), map[place]bool{}
	if journal {
		kept = everything
	}
	for _, c := range d.changes {
		if c.settled {
			continue
		}
		keep := kept() && !slices.ContainsFunc(c.sets, func(s set) bool { return lost[place{s.dir, s.name}] })
		for _, s := range c.sets {
			if !keep {
				lost[place{s.dir, s.name}] = true
			}
		}
		if keep {
			c.put()
		}
	}
	d.changes = nil
}

// restart puts a node, and all below it, into the state in which the machine finds it.
func (d *Disk) restart(rng *rand.Rand, n *inode, journal bool) {
	n.links, n.opened, n.locked, n.unsynced = 1, 0, nil, nil
	if !n.isDir() {
		d.tear(rng, n, journal)
		return
	}
	n.names = maps.Clone(n.synced)
	for _, name := range slices.Sorted(maps.Keys(n.names)) {
		d.restart(rng, n.names[name], journal)
	}
}

// tear leaves a file with some of its unsynced pages and, without a journal, sizes and times.
func (d *Disk) tear(rng *rand.Rand, n *inode, journal bool) {
	if n.isLink() {
		return
	}
	kept := mood(rng)
	if journal {
		kept = func() bool { return rng.IntN(4) > 0 }
	}
	for i := range n.dirty.all() {
		if kept() {
			n.plate = putPage(n.plate, n.data, i)
		}
	}
	if kept() || journal {
		n.plateTime = n.mtime
	}
	if n.plateSize = tornSize(rng, n.plateSize, n.size); journal {
		n.plateSize = n.size
	}
	n.plate = n.plate[:min(int64(len(n.plate)), n.plateSize)]
	n.data, n.size, n.mtime, n.dirty = slices.Clone(n.plate), n.plateSize, n.plateTime, nil
	n.taken = nil
	d.used += n.taken.add(pagesOf(0, n.size))
}

// tornSize is the size before, the one after, or one between that an append had reached.
func tornSize(rng *rand.Rand, before, after int64) int64 {
	switch rng.IntN(3) {
	case 0:
		return before
	case 1:
		return after
	}
	low, high := min(before, after), max(before, after)
	size := (low + rng.Int64N(high-low+1)) / page * page
	return max(low, size)
}
