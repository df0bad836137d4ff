package node

import (
	"fmt"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
)

// tooSlow is how many newer versions must come during a download before a user is told: one may come to the fastest.
const tooSlow = 2

// overtaken counts the newer versions that came while a version was fetched. It is plain state.
type overtaken struct {
	newest mesh.Version
	times  int
}

// by notes the newest version that is wanted by now.
func (o *overtaken) by(v mesh.Version) {
	if v.Compare(o.newest) > 0 {
		o.newest = v
		o.times++
	}
}

// problem tells what a user should know, nothing when the link is fast enough.
func (o overtaken) problem(to mesh.Version) string {
	if o.times < tooSlow {
		return ""
	}
	return fmt.Sprintf("the link is slower than the publishes: %d newer versions came while %d was being fetched, so some are skipped: "+
		"publish less often, or give this host, or the relay that it is behind, a faster link or a peer nearby", o.times, to.Number)
}

// tellPace says whether the link is slower than the publishes, until a download ends before anything newer comes, or the
// newest version is served. Standing still for want of somebody who has a block is another matter, unless a relay is
// getting it: then its link is the slow one.
func (r *rollout) tellPace(d *download, ended bool) {
	e, _, _ := d.at.now()
	stands := time.Since(d.still.since) > scoutAfter && !d.still.since.IsZero()
	if stands && !r.mesh.Relayed(e.Manifest) {
		d.overtaken.times = 0
		return
	}
	if text := d.overtaken.problem(d.to); text != "" || ended && d.overtaken.times == 0 {
		r.board.note("pace", text)
	}
}
