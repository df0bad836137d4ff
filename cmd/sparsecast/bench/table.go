package bench

import (
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"
)

// print writes tables that fit 100 columns.
func (r *Report) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s of weights in %d tensors\n", r.Source, humanize.Bytes(r.Anchor.Dense), r.Tensors)
	r.printPairs(w)
	r.printPeers(w)
	r.printWhole(w)
	r.printSpeeds(w)
	for _, note := range r.Notes {
		fmt.Fprintf(w, "\nnote: %s\n", note)
	}
}

func (r *Report) printPairs(w io.Writer) {
	fmt.Fprintf(w, "\n%-16s %11s %8s %11s %8s %11s %7s %9s %9s\n",
		"step", "changed", "density", "stream B", "B/change", "bound B", "x bound", "manifest", "outboard")
	for _, p := range r.rows() {
		fmt.Fprintf(w, "%-16s %11s %7.3f%% %11s %8.3f %11s %7.3f %9s %9s\n", p.From, within(11, p.Changed), 100*p.Density, within(11, p.Stream),
			p.BytesPerChanged, within(11, uint64(p.Bound)), p.OfBound, within(9, p.Manifest), within(9, p.Outboard))
	}
}

// rows are the pairs, named by what they lead between, and their sum where there are several.
func (r *Report) rows() (rows []Pair) {
	for _, p := range r.Pairs {
		p.From += " > " + p.To
		rows = append(rows, p)
	}
	if len(rows) > 1 {
		s := r.Sum
		s.From = "sum"
		rows = append(rows, s)
	}
	return rows
}

func (r *Report) printPeers(w io.Writer) {
	names := r.peerNames()
	if len(names) == 0 {
		return
	}
	fmt.Fprintf(w, "\nbytes a changed element of ours (with the manifest) and of others, and our size as a share of theirs\n")
	fmt.Fprintf(w, "%-16s %7s", "step", "ours")
	for _, name := range names {
		fmt.Fprintf(w, " %13s", name)
	}
	fmt.Fprintln(w)
	for _, p := range r.rows() {
		fmt.Fprintf(w, "%-16s %7.3f", p.From, ratio(float64(p.wire()), float64(p.Changed)))
		for _, name := range names {
			fmt.Fprintf(w, " %13s", p.besides(name))
		}
		fmt.Fprintln(w)
	}
	for _, p := range peers {
		fmt.Fprintf(w, "  %-10s  %s\n", p.name, p.about)
	}
	if names[len(names)-1] == patchFromPeer {
		fmt.Fprintf(w, "  %-10s  zstd --patch-from between files, the smaller of levels 3 and 9, with large tables\n", patchFromPeer)
	}
}

// besides tells of a peer's code next to ours.
func (p *Pair) besides(name string) string {
	size, ok := p.peer(name)
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.2f %5.1f%%", ratio(float64(size.Bytes), float64(p.Changed)), 100*size.Ours)
}

// peerNames are those of all that took any pair, in order.
func (r *Report) peerNames() (names []string) {
	measured := func(name string) bool {
		for _, p := range r.Pairs {
			if _, ok := p.peer(name); ok {
				return true
			}
		}
		return false
	}
	for _, p := range peers {
		if measured(p.name) {
			names = append(names, p.name)
		}
	}
	if measured(patchFromPeer) {
		names = append(names, patchFromPeer)
	}
	return names
}

// printWhole tells of the full copy and of the delta over all steps.
func (r *Report) printWhole(w io.Writer) {
	fmt.Fprintf(w, "\nfull copy of %s: stream of %s B, %.2f %% of the %s B in its files\n",
		r.Anchor.State, comma(r.Anchor.Stream), 100*r.Anchor.Share, comma(r.Anchor.Files))
	if s := r.Squashed; s != nil {
		fmt.Fprintf(w, "squashed %s > %s: %.3f %% changed, stream of %s B, %.2f %% of the %s B of single steps\n",
			s.From, s.To, 100*ratio(float64(s.Changed), float64(s.Elements)), comma(s.Stream), 100*s.Share, comma(s.Singles))
	}
}

func (r *Report) printSpeeds(w io.Writer) {
	if r.SpeedOf == nil {
		return
	}
	s := r.SpeedOf
	copies := ""
	if s.Copies > 1 {
		copies = fmt.Sprintf(" repeated %d times", s.Copies)
	}
	fmt.Fprintf(w, "\nspeed on %s > %s%s: %s of weights, %.3f %% changed\n", s.From, s.To, copies, humanize.Bytes(s.Bytes), 100*s.Density)
	fmt.Fprintf(w, "GB/s of weights, medians of %d rounds; %s\n", s.Rounds, r.Machine)
	fmt.Fprintf(w, "%-8s %7s %6s %8s %9s %11s %8s %9s %11s %8s\n",
		"kernel", "threads", "cores", "memmove", "encode", "of memmove", "scaling", "apply", "of memmove", "scaling")
	for _, s := range r.Speeds {
		fmt.Fprintf(w, "%-8s %7d %6.1f %8.2f %s %s\n", s.Kernel, s.Threads, s.Cores, s.Memmove/1e9, s.Encode, s.Apply)
	}
}

// String tells a rate in three columns.
func (r Rate) String() string {
	return fmt.Sprintf("%9.2f %11.3f %8s", r.Speed/1e9, r.OfMemmove, fmt.Sprintf("x%.2f", r.OfOne))
}

// String names a machine.
func (m Machine) String() string {
	name := strings.Join(strings.Fields(m.CPU), " ")
	if name == "" {
		name = "unknown processor"
	}
	name = fmt.Sprintf("%s, %d threads", name, m.Cores)
	if m.Load != "" {
		name += ", load " + m.Load
	}
	return name
}

// within writes a number in so many columns: whole where that fits.
func within(columns int, n uint64) string {
	if whole := comma(n); len(whole) <= columns {
		return whole
	}
	return humanize.SIWithDigits(float64(n), 2, "")
}

func comma(n uint64) string { return humanize.Comma(int64(min(n, 1<<62))) }
