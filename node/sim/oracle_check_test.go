package sim

import (
	"io"
	"math/rand/v2"
	"path"
	"testing"
	"testing/synctest"

	"github.com/sparsecast/sparsecast/mesh"
)

// A bit that flips in what a node serves is no fault of it, even if it died before it could say that it serves that.
func TestHarmIsExcusedByWhatWasThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t.Context(), everyCall(1, killed, 1), NewTrace(io.Discard))
		b := w.boxes[1]
		next := w.base.next(rand.New(rand.NewPCG(1, 2)), sparse)
		number := uint64(1)
		w.oracle.hand(0, next, &number)
		slot := path.Join(dataDir, "slots/a")
		b.put(path.Join(slot, weightsFile), next.files()[""])
		eyes := b.disk.Mount()
		if err := eyes.Symlink(slot, path.Join(dataDir, "current")); err != nil {
			t.Fatal(err)
		}
		eyes.Kill()
		b.life = &life{box: b, told: true}
		b.serves(mesh.VersionRoot{Root: w.base.root()}) // as it was last seen
		b.flip(&flip{Who: 1, What: liveSlot, Where: 12000 << 8})
		harmed, err := b.engine(slot)
		if err != nil || b.w.oracle.holds(next.root(), harmed) {
			t.Fatalf("no harm was done: %v", err)
		}
		b.serves(mesh.VersionRoot{Version: mesh.Version{Epoch: 1, Number: 1}, Root: next.root()})
		if !b.excused(harmed, nil, false) {
			t.Error("the harm is held against the node")
		}
		b.serves(mesh.VersionRoot{Version: mesh.Version{Epoch: 1, Number: 2}, Root: w.base.root()})
		if b.excused(harmed, nil, false) {
			t.Error("the harm is excused in another state")
		}
		w.end()
	})
}
