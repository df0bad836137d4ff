package faults

import (
	"sync"
	"syscall"
	"time"
)

// Disk is a file system in memory that outlives the processes which mount it. Its methods are safe for concurrent use.
type Disk struct {
	mu       sync.Mutex // guards all below, and every inode and Mount
	root     *inode
	changes  []*change // of names, in order
	stale    int       // about how many of them are settled
	mounts   []*Mount
	boots    int
	now      func() time.Time
	last     time.Time // handed out by tick
	used     int64     // pages
	limit    int64     // pages, 0 for none
	readOnly bool
}

// NewDisk returns an empty disk. Now tells the time of changes; two changes never get the same.
func NewDisk(now func() time.Time) *Disk {
	d := &Disk{root: newDir(0o755, now()), now: now, boots: 1}
	d.root.links = 1
	return d
}

// tick returns the time for a change.
func (d *Disk) tick() time.Time {
	t := time.Unix(0, d.now().UnixNano()) // without the monotonic clock, which would decide comparisons
	if !t.After(d.last) {
		t = d.last.Add(1)
	}
	d.last = t
	return t
}

// SetLimit sets how many bytes all files may take, in pages of 4 KiB; 0 is no limit. More than that is ENOSPC.
func (d *Disk) SetLimit(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.limit = (bytes + page - 1) / page
}

// SetReadOnly makes every change fail with EROFS, or lets them pass again.
func (d *Disk) SetReadOnly(readOnly bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.readOnly = readOnly
}

// Used returns how many bytes all files take, in whole pages.
func (d *Disk) Used() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used * page
}

// take finds space for the bytes from off to end of n and returns where the space ends, which is before end when the
// disk is full.
func (d *Disk) take(n *inode, off, end int64) (int64, error) {
	if end > maxSize {
		return off, syscall.EFBIG
	}
	first, past := pagesOf(off, end)
	for i := first; i < past; i++ {
		if n.taken.has(i) {
			continue
		}
		if d.limit > 0 && d.used >= d.limit {
			return max(off, i*page), syscall.ENOSPC
		}
		d.used += n.taken.add(i, i+1)
	}
	return end, nil
}

// release gives back the space of a node that nobody can reach any more.
func (d *Disk) release(n *inode) {
	if n.links == 0 && n.opened == 0 {
		d.used -= n.taken.cut(0)
	}
}
