package faults

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
)

// WriteFile puts a file and the directories above it on the disk, durable at once, as an operator does before a node
// is started.
func (d *Disk) WriteFile(path string, data []byte, mode fs.FileMode) error {
	m := d.Mount()
	defer m.Kill()
	if err := m.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.walk(path, true)
	if err == nil && s.node != nil && s.node.mode.Type() != 0 {
		err = syscall.EEXIST
	}
	if err != nil {
		return failed("write", path, err)
	}
	n := newFile(mode, d.tick())
	if _, err := d.take(n, 0, int64(len(data))); err != nil {
		d.release(n)
		return failed("write", path, err)
	}
	n.write(data, 0)
	n.flush()
	d.apply(set{s.dir, s.name, n})
	for dir := s.path; dir != "/"; {
		dir = filepath.Dir(dir)
		above, err := d.find(dir, true)
		if err != nil {
			return failed("write", path, err)
		}
		d.syncDir(above.node)
	}
	return nil
}

// ReadFile returns what a process would read at path, and counts as no call.
func (d *Disk) ReadFile(path string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.regular(path)
	if err != nil {
		return nil, failed("read", path, err)
	}
	return extend(slices.Clone(n.data), n.size), nil
}

// Files returns the paths of all files and symlinks, sorted, as a process would find them.
func (d *Disk) Files() []string {
	return d.Named("")
}

// Named returns the paths of all files and symlinks of a name in whatever directory, sorted; of all where name is empty.
func (d *Disk) Named(name string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := named(d.root, "/", name, nil)
	slices.Sort(list)
	return list
}

// named makes no paths but those that it returns, and of directories: simulations look for files all the time.
func named(n *inode, dir, name string, list []string) []string {
	for entry, child := range n.names {
		switch {
		case child.isDir():
			list = named(child, dir+entry+"/", name, list)
		case name == "" || entry == name:
			list = append(list, dir+entry)
		}
	}
	return list
}

// FlipBit changes one bit of a file as rot does: in the cache and on the platter, with no other trace.
func (d *Disk) FlipBit(path string, bit int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.regular(path)
	if err != nil {
		return failed("flip", path, err)
	}
	if bit < 0 || bit/8 >= n.size {
		return failed("flip", path, fmt.Errorf("bit %d of %d bytes", bit, n.size))
	}
	off, mask := bit/8, byte(1)<<(bit%8)
	n.data = extend(n.data, off+1)
	n.data[off] ^= mask
	if off < n.plateSize {
		n.plate = extend(n.plate, off+1)
		n.plate[off] ^= mask
	}
	return nil
}

// Truncate cuts or extends a file as another process does, under whoever has it open.
func (d *Disk) Truncate(path string, size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.regular(path)
	if err == nil {
		n.mtime = d.tick()
		err = d.resize(n, size)
	}
	if err != nil {
		return failed("truncate", path, err)
	}
	return nil
}

func (d *Disk) resize(n *inode, size int64) error {
	if size < 0 {
		return syscall.EINVAL
	}
	if size > maxSize {
		return syscall.EFBIG
	}
	n.resize(size)
	_, past := pagesOf(0, size)
	d.used -= n.taken.cut(past)
	return nil
}

// regular finds a regular file.
func (d *Disk) regular(path string) (*inode, error) {
	s, err := d.find(path, true)
	if err != nil {
		return nil, err
	}
	if !s.node.mode.IsRegular() {
		return nil, syscall.EINVAL
	}
	return s.node, nil
}
