package node

import "github.com/sparsecast/sparsecast/mesh"

// nearest returns what to fetch first on the way to head, to which path leads: what a download had begun that was left, as
// when the node restarted, and that takes no more than all of path. By the same rule it would not have been left.
func (r *rollout) nearest(head mesh.Head, path, edges []mesh.Edge) (mesh.Head, []mesh.Edge) {
	var s situation
	var g goal
	r.board.look(func(b *board) { s, g = b.situation(), b.goal })
	if g.do != move || s.pin != nil {
		return head, path
	}
	left := r.left()
	for _, b := range r.unfinished.list {
		v := b.version
		if v.Compare(head.Version) >= 0 || !s.isBeyond(v) || s.leftBehind(mesh.VersionRoot{Version: v, Root: b.edge.Target}) {
			continue
		}
		p, err := r.plan(b.edge.Target, edges)
		if err != nil || len(p) == 0 || (pursuit{path: p}).leadsInto(path) || left.bytes(p) > left.bytes(path) {
			continue
		}
		head, path = aim(head, mesh.VersionRoot{Version: v, Root: b.edge.Target}), p
	}
	return head, path
}
