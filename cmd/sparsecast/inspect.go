package main

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
	"github.com/sparsecast/sparsecast/delta"
)

type inspectCmd struct {
	File string `arg:"" help:"A delta file, a safetensors file, or a checkpoint directory." type:"path"`
	jsonFlag
}

// Help is shown by sparsecast inspect --help.
func (inspectCmd) Help() string {
	return `For a delta file: the states it leads between, what changed, how well it is coded. For a checkpoint: its tensors.
Only headers are read; sparsecast verify reads everything.

  sparsecast inspect 1-2.delta
  sparsecast inspect /models/base --json`
}

// Run prints what the file holds.
func (c inspectCmd) Run() error {
	f, container, deltaErr := openDeltaFile(c.File)
	if deltaErr == nil {
		defer f.Close()
		return c.show(edgeFacts(container.Manifest), func() { printEdge(container.Manifest) })
	}
	s, err := openOne(c.File)
	if err != nil {
		return fmt.Errorf("neither a checkpoint (%w) nor a delta file (%w)", err, deltaErr)
	}
	defer s.Close()
	return c.show(stateFacts(s), func() { printTensors(s) })
}

// edgeInfo is what a script learns of an edge.
type edgeInfo struct {
	Base            delta.Root `json:"base"`
	Target          delta.Root `json:"target"`
	Schema          string     `json:"schema"`
	Elements        uint64     `json:"elements"`
	Changed         uint64     `json:"changed"`
	Dense           uint64     `json:"dense_bytes"`
	Coded           uint64     `json:"coded_bytes"`
	BytesPerChanged float64    `json:"bytes_per_changed"` // 0 when nothing changed
	Chunks          int        `json:"chunks"`
	ChunkSize       uint32     `json:"chunk_bytes"`
}

func edgeFacts(m *delta.Manifest) edgeInfo {
	return edgeInfo{
		Base: m.Base, Target: m.Target, Schema: m.Schema.String(), Elements: m.Elements, Changed: m.Changed,
		Dense: m.Dense, Coded: m.Coded, BytesPerChanged: ratio(m.Coded, m.Changed), Chunks: len(m.Chunks), ChunkSize: m.ChunkSize,
	}
}

func printEdge(m *delta.Manifest) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer w.Flush()
	base := m.Base.String()
	if m.Base.IsZero() {
		base = "nothing: a full copy"
	}
	fmt.Fprintf(w, "from\t%s\nto\t%s\n", base, m.Target)
	fmt.Fprintf(w, "changed\t%d of %d elements (%.3f %%)\n", m.Changed, m.Elements, 100*ratio(m.Changed, m.Elements))
	fmt.Fprintf(w, "code\t%s for %s of weights: %.1f times smaller, %.3f bytes a changed element\n",
		humanize.Bytes(m.Coded), humanize.Bytes(m.Dense), ratio(m.Dense, m.Coded), ratio(m.Coded, m.Changed))
	fmt.Fprintf(w, "chunks\t%d of %s\n", len(m.Chunks), humanize.Bytes(uint64(m.ChunkSize)))
}

// tensorInfo is what a script learns of a tensor.
type tensorInfo struct {
	Name  string   `json:"name"`
	DType string   `json:"dtype"`
	Shape []uint64 `json:"shape"`
	Bytes int64    `json:"bytes"`
}

type stateInfo struct {
	Schema  string       `json:"schema"`
	Files   []string     `json:"files"`
	Bytes   uint64       `json:"bytes"`
	Tensors []tensorInfo `json:"tensors"`
}

func stateFacts(s *delta.Checkpoint) stateInfo {
	info := stateInfo{Schema: s.Schema().ID().String(), Files: s.Files(), Bytes: s.Schema().Bytes(), Tensors: []tensorInfo{}}
	for _, t := range s.Schema().Tensors() {
		info.Tensors = append(info.Tensors, tensorInfo{t.Name, t.DType, append([]uint64{}, t.Shape...), t.Size})
	}
	return info
}

func printTensors(s *delta.Checkpoint) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer w.Flush()
	for _, t := range s.Schema().Tensors() {
		fmt.Fprintf(w, "%s\t%s\t%v\t%s\n", t.Name, t.DType, t.Shape, humanize.Bytes(uint64(t.Size)))
	}
	fmt.Fprintf(w, "%d tensors in %d files\t\t\t%s\n", len(s.Schema().Tensors()), len(s.Files()), humanize.Bytes(s.Schema().Bytes()))
}

func ratio(a, b uint64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
