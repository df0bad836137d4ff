package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/mesh"
)

const (
	stallAfter = 20 * time.Second // without progress, after which a download that nobody can serve is given up
	stallLook  = time.Second      // between two looks at one
)

// errUnobtainable says that no peer that is connected has a block.
var errUnobtainable = errors.New("no peer has it")

// stall measures how long a download has stood still because nobody has what comes next. It is plain state.
type stall struct {
	since time.Time
	moves int
}

// look takes how often something has arrived, and whether nobody has some of the rest.
func (s *stall) look(now time.Time, moves int, lacking bool) time.Duration {
	if s.since.IsZero() || moves != s.moves || !lacking {
		s.since, s.moves = now, moves
	}
	return now.Sub(s.since)
}

// stage is how far a download along a path is. One goroutine moves it and another one looks.
type stage struct {
	mu    sync.Mutex
	edge  mesh.Edge
	want  cid.Cid // the block, or the manifest of the chunks, that is being fetched
	moves int     // how often something arrived
}

func (s *stage) enter(e mesh.Edge, want cid.Cid) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moves++
	s.edge, s.want = e, want
}

func (s *stage) gain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moves++
}

func (s *stage) now() (e mesh.Edge, want cid.Cid, moves int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.edge, s.want, s.moves
}

// watchStall ends ctx by cancel with errUnobtainable when what s is at stands still for too long. It returns when ctx
// has ended.
func watchStall(ctx context.Context, cancel context.CancelCauseFunc, run *mesh.Run, s *stage, patience time.Duration) {
	look := time.NewTicker(min(stallLook, patience))
	defer look.Stop()
	var still stall
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-look.C:
			_, want, moves := s.now()
			if block, lacking := run.Lacking(want); still.look(now, moves, lacking) >= patience {
				cancel(fmt.Errorf("block %s: %w", block, errUnobtainable))
			}
		}
	}
}
