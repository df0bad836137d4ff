package node

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/files"
	"github.com/sparsecast/sparsecast/node/files/faults"
)

// A memo is written when it says something new, and only then. A disk that takes nothing is told of once.
func TestMemoIsWrittenWhenItChanges(t *testing.T) {
	mount := faults.NewDisk(time.Now).Mount()
	full, writes, warnings := false, 0, &lastLines{}
	mount.OnCall = func(op faults.Op) error {
		if op.Call == "rename" {
			writes++
		}
		if op.Writes && full {
			return syscall.ENOSPC
		}
		return nil
	}
	dir, err := files.Open(mount, "/data")
	try(t, err)
	open := func() *memo[unfinishedKept] {
		return &memo[unfinishedKept]{note: unfinishedNote, dir: dir, log: warnings.logger()}
	}
	m := open()
	m.keep(m.recall())
	if writes > 0 {
		t.Error("nothing is written down")
	}
	one := unfinishedKept{[]mesh.Edge{edge("a", "b", 3)}, []mesh.Version{{Number: 1}}}
	for range 3 {
		m.keep(one)
		m = open()
		if got := m.recall(); len(got.Edges) != 1 || got.Edges[0] != one.Edges[0] || got.Versions[0] != one.Versions[0] {
			t.Fatalf("recalls %v, want %v", got, one)
		}
	}
	if writes != 1 {
		t.Errorf("written %d times", writes)
	}
	full = true
	for range 3 {
		m.keep(unfinishedKept{})
	}
	if n := strings.Count(warnings.String(), "warn"); n != 1 {
		t.Errorf("warned %d times:\n%s", n, warnings)
	}
	full = false
	if m.keep(unfinishedKept{}); len(open().recall().Edges) > 0 {
		t.Error("not written again once there is room")
	}
}

// What makes no sense is forgotten, and the next thing that is kept takes its place.
func TestMemoThatMakesNoSense(t *testing.T) {
	good := edge("a", "b", 3)
	odd := good
	odd.Manifest = cid.NewCidV1(cid.DagCBOR, good.Manifest.Hash())
	for name, k := range map[string]unfinishedKept{
		"no manifest":       {[]mesh.Edge{{Target: root("b")}}, make([]mesh.Version, 1)},
		"another manifest":  {[]mesh.Edge{odd}, make([]mesh.Version, 1)},
		"to nothing":        {[]mesh.Edge{{Manifest: good.Manifest, Base: root("a")}}, make([]mesh.Version, 1)},
		"in a circle":       {[]mesh.Edge{{Manifest: good.Manifest, Base: root("a"), Target: root("a")}}, make([]mesh.Version, 1)},
		"too many":          {make([]mesh.Edge, maxNoted+1), make([]mesh.Version, maxNoted+1)},
		"without a version": {[]mesh.Edge{good}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := files.Open(faults.NewDisk(time.Now).Mount(), "/data")
			try(t, err)
			m := &memo[unfinishedKept]{note: unfinishedNote, dir: dir, log: zerolog.Nop()}
			try(t, m.save(dir, k))
			if got := m.recall(); len(got.Edges) > 0 {
				t.Errorf("recalls %v", got)
			}
			m.keep(unfinishedKept{})
			if _, ok, err := m.load(dir); !ok || err != nil {
				t.Errorf("is still there: %v", err)
			}
		})
	}
}
