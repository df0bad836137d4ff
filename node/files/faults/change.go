package faults

import "slices"

// maxUnsynced bounds the changes of a directory that a loss of power may take back, and with them the memory that
// replaced files take: systems write back what waited long, too.
const maxUnsynced = 256

// change is one unsynced change of names, kept or lost whole.
type change struct {
	sets    []set
	settled bool // on the platter
}

// set gives a name in a directory to a node, or to none.
type set struct {
	dir  *inode
	name string
	node *inode
}

// apply changes names in the cache and notes it for the platter. What gets a name comes before what loses one.
func (d *Disk) apply(sets ...set) {
	c := &change{sets: sets}
	now := d.tick()
	for _, s := range sets {
		before := s.dir.names[s.name]
		if s.node == nil {
			delete(s.dir.names, s.name)
		} else {
			s.node.links++
			s.dir.names[s.name] = s.node
		}
		if before != nil {
			before.links--
			d.release(before)
		}
		s.dir.mtime = now
		s.dir.unsynced = append(s.dir.unsynced, c)
		if n := len(s.dir.unsynced); n > maxUnsynced {
			d.writeBack(s.dir, n/2)
		}
	}
	d.changes = append(d.changes, c)
}

// syncDir brings all changes of a directory to the platter.
func (d *Disk) syncDir(n *inode) {
	d.writeBack(n, len(n.unsynced))
}

// writeBack brings the oldest changes of a directory to the platter.
func (d *Disk) writeBack(n *inode, count int) {
	for _, c := range n.unsynced[:count] {
		c.settle(n)
	}
	n.unsynced = slices.Clone(n.unsynced[count:])
	if d.stale += count; d.stale > maxUnsynced {
		d.stale = 0
		d.changes = slices.DeleteFunc(d.changes, func(c *change) bool { return c.settled })
	}
}

// settle brings c to the platter. A change that reaches into other directories than the one whose earlier changes are
// all settled takes with it what came before under the same names there.
func (c *change) settle(in *inode) {
	if c.settled {
		return
	}
	for _, s := range c.sets {
		if s.dir != in {
			c.settleBefore(s)
		}
	}
	c.put()
}

// put brings c to the platter as it is.
func (c *change) put() {
	c.settled = true
	for _, s := range c.sets {
		if s.node == nil {
			delete(s.dir.synced, s.name)
		} else {
			s.dir.synced[s.name] = s.node
		}
	}
}

func (c *change) settleBefore(s set) {
	for _, before := range s.dir.unsynced {
		if before == c {
			return
		}
		if before.touches(s.dir, s.name) {
			before.settle(nil)
		}
	}
}

func (c *change) touches(dir *inode, name string) bool {
	for _, s := range c.sets {
		if s.dir == dir && s.name == name {
			return true
		}
	}
	return false
}
