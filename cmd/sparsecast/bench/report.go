package bench

import (
	"encoding/json"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/klauspost/cpuid/v2"
)

// Report is all that was measured, as it is written as JSON.
type Report struct {
	Source   string    `json:"source"`
	Machine  Machine   `json:"machine"`
	Tensors  int       `json:"tensors"`
	Pairs    []Pair    `json:"pairs"`
	Sum      Pair      `json:"sum"`
	Anchor   Anchor    `json:"anchor"`
	Squashed *Squashed `json:"squashed,omitempty"`
	SpeedOf  *SpeedOf  `json:"speed_of,omitempty"`
	Speeds   []Speed   `json:"speeds,omitempty"`
	Notes    []string  `json:"notes,omitempty"`
}

// Machine is where it was measured.
type Machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	OS    string `json:"os"`
	Arch  string `json:"arch"`
	Go    string `json:"go"`
	Load  string `json:"load,omitempty"` // of the last minute, at the end; empty where the system does not tell
}

func thisMachine() Machine {
	return Machine{
		CPU: cpuid.CPU.BrandName, Cores: runtime.NumCPU(), OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(), Load: load(),
	}
}

// load returns the load average of the last minute, which Linux tells.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}

// Pair is what was measured of two states that follow each other, or the sum of all pairs.
type Pair struct {
	From string `json:"from"`
	To   string `json:"to"`
	Edge
	Density         float64    `json:"density"`
	BytesPerChanged float64    `json:"bytes_per_changed"` // of the stream
	Bound           float64    `json:"bound_bytes"`
	OfBound         float64    `json:"of_bound"` // the stream
	Peers           []PeerSize `json:"peers,omitempty"`
}

// rate fills in what follows from the rest.
func (p *Pair) rate() {
	p.Density = ratio(float64(p.Changed), float64(p.Elements))
	p.BytesPerChanged = ratio(float64(p.Stream), float64(p.Changed))
	p.OfBound = ratio(float64(p.Stream), p.Bound)
	for i, w := range p.Peers {
		p.Peers[i].Ours = ratio(float64(p.wire()), float64(w.Bytes))
	}
}

// peer returns what a peer's code of the pair takes, if it can be told.
func (p *Pair) peer(name string) (PeerSize, bool) {
	for _, w := range p.Peers {
		if w.Name == name {
			return w, true
		}
	}
	return PeerSize{}, false
}

// sum adds up pairs. Of peers it has those that took all of them.
func sum(pairs []Pair) (s Pair) {
	if len(pairs) == 0 {
		return s
	}
	s.From, s.To = pairs[0].From, pairs[len(pairs)-1].To
	for _, p := range pairs {
		s.Elements += p.Elements
		s.Changed += p.Changed
		s.Dense += p.Dense
		s.Stream += p.Stream
		s.Manifest += p.Manifest
		s.Outboard += p.Outboard
		s.Bound += p.Bound
	}
	for _, w := range pairs[0].Peers {
		if n, ok := sumOfPeer(pairs, w.Name); ok {
			s.Peers = append(s.Peers, PeerSize{Name: w.Name, Bytes: n})
		}
	}
	s.rate()
	return s
}

func sumOfPeer(pairs []Pair, name string) (n uint64, all bool) {
	for _, p := range pairs {
		w, ok := p.peer(name)
		if !ok {
			return 0, false
		}
		n += w.Bytes
	}
	return n, true
}

// Anchor is a full copy of the last state.
type Anchor struct {
	State string `json:"state"`
	Edge
	Files uint64  `json:"file_bytes"`
	Share float64 `json:"of_files"` // the stream
}

// Squashed is the delta from the first state to the last.
type Squashed struct {
	From string `json:"from"`
	To   string `json:"to"`
	Edge
	Singles uint64  `json:"singles_bytes"` // the streams of all pairs
	Share   float64 `json:"of_singles"`    // the stream
}

// SpeedOf is what speeds were measured on.
type SpeedOf struct {
	From    string  `json:"from"`
	To      string  `json:"to"`
	Copies  int     `json:"copies"` // of all tensors
	Bytes   uint64  `json:"bytes"`
	Density float64 `json:"density"`
	Rounds  int     `json:"rounds"`
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// write prints the report: as JSON where path is -, else as tables, and as JSON to the file of that name, if it has one.
func (r *Report) write(out io.Writer, path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if path == "-" {
		_, err = out.Write(b)
		return err
	}
	r.print(out)
	if path == "" {
		return nil
	}
	return os.WriteFile(path, b, 0o644)
}
