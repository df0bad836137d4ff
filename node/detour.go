package node

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

const (
	lookEvery  = stallLook / 4   // between two looks at the download of a rollout
	scoutAfter = 2 * lookEvery   // without anybody who knows an edge, after which it is asked who knows another way
	hastyAfter = 3 * time.Second // after which that is taken, where it is fair
	fairDetour = 8               // times the bytes of the path that such a way may cost
)

// download is one that a rollout is at.
type download struct {
	path      []mesh.Edge
	to        mesh.Version           // aimed at when it began
	manifests []*delta.Manifest      // of the path, as far as they are here
	whole     atomic.Int64           // edges of which all is here, from the first
	stops     atomic.Pointer[[]bool] // edges after which it ends; nil for none but the last

	overtaken overtaken

	at    stage
	still stall
	alone bool // no peer was connected at the last look
	// missing are the edges of which not all is here, looked for only when no peer is connected.
	missing []mesh.Edge
	scout   *scout
}

// stop tells whether the download ends with edge i.
func (d *download) stop(i int) bool {
	stops := d.stops.Load()
	return stops != nil && (*stops)[i]
}

// stood returns for how long a download has stood still, and begins anew with the first peer after a time without any.
func (d *download) stood(now time.Time, moves int, lacking, alone bool) time.Duration {
	if d.alone && !alone {
		d.still = stall{}
	}
	d.alone = alone
	return d.still.look(now, moves, lacking)
}

// detour returns the path to target without e, nil when none leads there. Clear tells whether it has nothing to avoid.
func detour(held []delta.Root, target delta.Root, edges []mesh.Edge, avoid map[mesh.Edge]bool, e mesh.Edge) (path []mesh.Edge, clear bool) {
	avoid = maps.Clone(avoid)
	avoid[e] = true
	path, err := PlanAround(held, target, edges, avoid, nil)
	if err != nil || slices.Contains(path, e) {
		return nil, false
	}
	return path, !slices.ContainsFunc(path, func(e mesh.Edge) bool { return avoid[e] })
}

// patienceFor returns how long a download stands still before the way around is taken. That is long: a peer may come
// that has what nobody has. But an edge of which nobody has even the manifest is likely to be a shortcut that its
// trainer made last and that nobody asked for: it is not waited for where the way around costs about as much. Where that
// is much dearer, such as a full copy in place of a small delta, waiting is the better bet.
func patienceFor(patience time.Duration, unknown bool, path, around []mesh.Edge) time.Duration {
	if unknown && codedBytes(around) <= fairDetour*codedBytes(path) {
		return min(hastyAfter, patience)
	}
	return patience
}

// codedBytes adds up what a path takes. As a float it does not wrap.
func codedBytes(path []mesh.Edge) (sum float64) {
	for _, e := range path {
		sum += float64(e.Coded)
	}
	return sum
}
