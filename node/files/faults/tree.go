package faults

import (
	"path/filepath"
	"strings"
	"syscall"
)

// maxHops bounds the symlinks on one path, as Linux does.
const maxHops = 40

// spot is where a path leads.
type spot struct {
	dir  *inode // nil at the root
	name string
	node *inode // nil when nothing has that name
	path string // with every symlink followed
}

// step is one directory on the way.
type step struct {
	node *inode
	name string
}

// walk follows an absolute path; a symlink at its end is followed too if follow says so. Only the last name may be absent.
func (d *Disk) walk(path string, follow bool) (spot, error) {
	if !filepath.IsAbs(path) {
		return spot{}, syscall.EINVAL // there is no working directory here
	}
	way, rest, hops := []step{{d.root, ""}}, strings.Split(path, "/"), 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		at := way[len(way)-1].node
		switch name {
		case "", ".":
			continue
		case "..":
			way = way[:max(1, len(way)-1)]
			continue
		}
		if !at.isDir() {
			return spot{}, syscall.ENOTDIR
		}
		node, last := at.names[name], !more(rest)
		switch {
		case node == nil && !last:
			return spot{}, syscall.ENOENT
		case node != nil && node.isLink() && (follow || !last):
			if hops++; hops > maxHops {
				return spot{}, syscall.ELOOP
			}
			if filepath.IsAbs(node.target) {
				way = way[:1]
			}
			rest = append(strings.Split(node.target, "/"), rest...)
		case last:
			return spot{at, name, node, pathOf(way, name)}, nil
		default:
			way = append(way, step{node, name})
		}
	}
	end := way[len(way)-1]
	s := spot{name: end.name, node: end.node, path: pathOf(way)}
	if len(way) > 1 {
		s.dir = way[len(way)-2].node
	}
	return s, nil
}

// more tells whether names are left that lead on.
func more(rest []string) bool {
	for _, name := range rest {
		if name != "" && name != "." {
			return true
		}
	}
	return false
}

func pathOf(way []step, last ...string) string {
	var b strings.Builder
	for _, s := range way[1:] {
		b.WriteString("/" + s.name)
	}
	for _, name := range last {
		b.WriteString("/" + name)
	}
	return filepath.Clean("/" + b.String())
}

// find is walk for what must be there.
func (d *Disk) find(path string, follow bool) (spot, error) {
	s, err := d.walk(path, follow)
	if err == nil && s.node == nil {
		err = syscall.ENOENT
	}
	return s, err
}
