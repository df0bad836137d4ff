package node

import (
	"context"
	"sync"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

// maxScouted bounds the manifests that are asked for beside a download.
const maxScouted = 64

// scout asks for the manifests of edges that a download may come to, all at the same time. They are small, whoever has
// one of an edge is likely to have the edge, and when the download gets there they are here. One goroutine sends it out;
// end calls it back.
type scout struct {
	run    *mesh.Run
	ctx    context.Context
	cancel context.CancelFunc
	out    sync.WaitGroup
	asked  map[mesh.Edge]bool
}

func newScout(ctx context.Context, run *mesh.Run) *scout {
	s := &scout{run: run, asked: make(map[mesh.Edge]bool)}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
}

// ask asks for what was not asked for before.
func (s *scout) ask(edges []mesh.Edge) {
	for _, e := range edges {
		if s.asked[e] || len(s.asked) == maxScouted {
			continue
		}
		s.asked[e] = true
		s.out.Go(func() { _, _ = s.run.Block(s.ctx, e.Manifest, delta.MaxManifest) }) // whoever needs it asks again
	}
}

// unknown returns those of the edges asked for that no connected peer has even the manifest of.
func (s *scout) unknown() []mesh.Edge {
	var found []mesh.Edge
	for e := range s.asked {
		if block, lacking := s.run.Lacking(e.Manifest); lacking && block == e.Manifest {
			found = append(found, e)
		}
	}
	return found
}

func (s *scout) end() {
	s.cancel()
	s.out.Wait()
}
