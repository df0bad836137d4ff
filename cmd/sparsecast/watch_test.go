package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// watch samples what the nodes of a run take, and holds it against what they are there for.
type watch struct {
	t       *testing.T
	dense   int64 // bytes of one copy of the weights
	coded   int64 // bytes of the smallest edge
	samples map[int]*samples
}

// samples are those of one process, from its start to its end.
type samples struct {
	host   *host
	memory []int64
	files  []int
}

// What one file takes beyond its bytes, and what a node keeps beside weights and edges: heads, markers, notes.
const (
	fileSlack    = 4 << 10
	smallRecords = 128 << 10
	smallFiles   = 16
	// edgeFiles is how many blocks the small edges here have: a manifest and a chunk. The trainer has an outboard
	// of two blocks beside them.
	edgeFiles     = 2
	outboardFiles = 2
)

func newWatch(t *testing.T, s *series) *watch {
	w := &watch{t: t, samples: map[int]*samples{}}
	for _, t := range s.state {
		w.dense += int64(len(t.data))
	}
	return w
}

// add notes how large the edges are.
func (w *watch) add(v api.VersionInfo) {
	if w.coded == 0 || int64(v.Coded) < w.coded {
		w.coded = int64(v.Coded)
	}
}

// offer wants all that is on offer to fit a limit, and no word that it does not.
func (w *watch) offer(trainer *host, limit uint64) {
	w.t.Helper()
	s := trainer.now()
	var sum uint64
	for _, o := range s.Offer {
		sum += o.Bytes
	}
	if said := strings.Contains(strings.Join(s.Problems, "\n"), "keep_bytes"); sum > limit || sum == 0 || said {
		w.t.Errorf("%d bytes are on offer, at most %d are to be: %v; problems %v", sum, limit, s.Offer, s.Problems)
	}
}

// disk wants a data directory to hold no more than copies of the weights, served, idle and in the making, what may be on
// offer, as much again that has just left the offer, and small records.
func (w *watch) disk(h *host, offer int64) {
	w.t.Helper()
	if size, count, fits := w.fits(h, 3, offer); !fits {
		w.t.Errorf("%s has %d bytes in %d files on its disk, too many for %d bytes on offer, in edges of %d at least, and weights of %d",
			h.name, size, count, offer, w.coded, w.dense)
	}
}

// tidy tells whether a node at rest holds just two copies of the weights, and what disk allows beside.
func (w *watch) tidy(h *host, offer int64) bool {
	_, _, fits := w.fits(h, 2, offer)
	return fits
}

func (w *watch) fits(h *host, copies int, offer int64) (size int64, count int, fits bool) {
	w.t.Helper()
	if h.role == mesh.RoleRelay {
		copies = 0
	}
	files := edgeFiles
	if h.role == mesh.RoleTrainer {
		files += outboardFiles
	}
	offer *= 2
	edges := int(offer/w.coded) + 1
	size, count = diskUse(w.t, h.data)
	allowed := int64(copies)*(w.dense+2*fileSlack) + offer + int64(edges*files)*fileSlack + smallRecords
	return size, count, size <= allowed && count <= edges*files+smallFiles
}

// process samples the memory and the open files of a node.
func (w *watch) process(h *host) {
	w.t.Helper()
	memory, files, ok := processUse(w.t, h)
	if !ok {
		return
	}
	s := w.samples[h.cmd.Process.Pid]
	if s == nil {
		s = &samples{host: h}
		w.samples[h.cmd.Process.Pid] = s
	}
	s.memory, s.files = append(s.memory, memory), append(s.files, files)
}

// verdict compares the first and the last third of what a process took, for those that lived long enough.
func (w *watch) verdict() {
	w.t.Helper()
	for _, s := range w.samples {
		third := len(s.memory) / 3
		if third == 0 {
			continue
		}
		early, late := slices.Max(s.memory[:third]), slices.Max(s.memory[len(s.memory)-third:])
		if late > early+early/2+16<<20 {
			w.t.Errorf("%s grew from %d MB to %d: %v", s.host.name, early>>20, late>>20, s.memory)
		}
		if early, late := slices.Max(s.files[:third]), slices.Max(s.files[len(s.files)-third:]); late > early+8 {
			w.t.Errorf("%s had %d open files at first and %d at last: %v", s.host.name, early, late, s.files)
		}
		w.t.Logf("%s over %d samples: %d to %d MB, %d to %d open files", s.host.name, len(s.memory), early>>20, late>>20, s.files[0], s.files[len(s.files)-1])
	}
}
