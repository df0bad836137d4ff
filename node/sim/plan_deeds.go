package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// publish has the training program on a machine take a step and publish it.
type publish struct {
	Who    int
	Change change
	Full   bool // with a full copy
	Seed   uint64
}

func (d *publish) String() string {
	full := ""
	if d.Full {
		full = ", with a full copy"
	}
	return fmt.Sprintf("the program on %s changes %s and publishes%s", boxName(d.Who), d.Change, full)
}

func (d *publish) do(w *World) { w.boxes[d.Who].program.enqueue(d) }

// rewind has the training program go back some steps, with other weights to come: in a new epoch, which it asks for or
// a restart of the node begins.
type rewind struct {
	Who, Back int
	Restart   bool
}

func (d *rewind) String() string {
	how := "with its next publish it asks for a new epoch"
	if d.Restart {
		how = "its node restarts"
	}
	return fmt.Sprintf("the program on %s goes back %d steps, and %s", boxName(d.Who), d.Back, how)
}

func (d *rewind) do(w *World) {
	b := w.boxes[d.Who]
	b.program.rewind(d.Back, !d.Restart)
	if d.Restart {
		b.quit()
		w.after(time.Second, b.revive)
	}
}

// pin has a user hold a node at a version that it once served, or let it go.
type pin struct {
	Who  int
	Back uint64 // so many numbers behind what is served
	Off  bool
}

func (d *pin) String() string {
	if d.Off {
		return fmt.Sprintf("%s is unpinned", boxName(d.Who))
	}
	return fmt.Sprintf("%s is pinned to %d before what it serves", boxName(d.Who), d.Back)
}

func (d *pin) do(w *World) {
	b := w.boxes[d.Who]
	if d.Off {
		b.unpin()
	} else {
		b.pin(d.Back)
	}
}

// confirm has a user say that the engine has loaded what is served.
type confirm struct{ Who int }

func (d *confirm) String() string {
	return fmt.Sprintf("the user of %s confirms what is served", boxName(d.Who))
}

func (d *confirm) do(w *World) { w.boxes[d.Who].confirm() }

// manner is how a node ends.
type manner string

const (
	politely manner = "is asked to end"
	killed   manner = "is killed"
	dark     manner = "loses power"
)

// stop ends a node, at once or at one of its next calls of the file system, and starts it again later.
type stop struct {
	Who    int
	How    manner
	AtCall int    // so many calls of the file system later; 0 for now
	Since  string // counted once something has taken its place whose path has this in it, empty for at once
	Back   time.Duration
	Wipe   bool // the data directory is emptied meanwhile
}

func (d *stop) String() string {
	s := fmt.Sprintf("%s %s", boxName(d.Who), d.How)
	if d.AtCall > 0 {
		since := "now"
		if d.Since != "" {
			since = "a change of " + d.Since
		}
		s += fmt.Sprintf(" at its %d. file call from %s", d.AtCall, since)
	}
	if d.Wipe {
		s += ", its data directory is emptied"
	}
	return s + fmt.Sprintf(", back after %s", d.Back)
}

func (d *stop) do(w *World) {
	b := w.boxes[d.Who]
	switch {
	case d.AtCall > 0:
		b.tap.arm(d)
	case d.How == politely:
		b.quit()
		b.later(d)
	default:
		b.fell(d)
	}
}

// ail makes calls of the file system fail.
type ail struct {
	Who   int
	Call  string // its kind; write, sync, rename, read, ...
	Skip  int    // so many calls go well first
	Times int
	Full  bool // no space, instead of an error of the device
}

func (d *ail) String() string {
	what := "fail with an I/O error"
	if d.Full {
		what = "find the disk full"
	}
	return fmt.Sprintf("on %s, after %d more, %d calls of %s %s", boxName(d.Who), d.Skip, d.Times, d.Call, what)
}

func (d *ail) do(w *World) { w.boxes[d.Who].tap.ail(*d) }

// fill leaves little space on a disk for a while.
type fill struct {
	Who  int
	Left int64
	For  time.Duration
}

func (d *fill) String() string {
	return fmt.Sprintf("only %d bytes are left on the disk of %s for %s", d.Left, boxName(d.Who), d.For)
}

func (d *fill) do(w *World) {
	b := w.boxes[d.Who]
	b.fill(d.Left)
	w.after(d.For, b.empty)
}

// part is where a bit flips.
type part string

const (
	aBlock   part = "a stored block"
	idleSlot part = "the idle slot"
	liveSlot part = "the served slot"
	theBase  part = "the base checkpoint"
)

// flip turns a bit over on a disk.
type flip struct {
	Who   int
	What  part
	Where uint64
}

func (d *flip) String() string { return fmt.Sprintf("a bit flips in %s of %s", d.What, boxName(d.Who)) }

func (d *flip) do(w *World) {
	w.boxes[d.Who].look() // what is served now counts, not what was at the last sample
	w.boxes[d.Who].flip(d)
}

// wire is what happens to the links between two machines; To may be one that stands for all others.
type wire struct {
	From, To int
	What     string // cut, hole, one way, refuse, slow
	For      time.Duration
}

func (d *wire) String() string {
	s := fmt.Sprintf("between %s and %s: %s", boxName(d.From), boxName(d.To), d.What)
	if d.What == "cut" {
		return s
	}
	return s + fmt.Sprintf(" for %s", d.For)
}

func (d *wire) do(w *World) {
	a, b := w.boxes[d.From].ip(), w.boxes[d.To].ip()
	set := func(on bool) {}
	switch d.What {
	case "cut":
		w.net.Cut(a, b)
		return
	case "hole":
		set = func(on bool) { w.net.BlackHole(a, b, on); w.net.BlackHole(b, a, on) }
	case "one way":
		set = func(on bool) { w.net.BlackHole(a, b, on) }
	case "refuse":
		set = func(on bool) { w.net.Refuse(a, b, on); w.net.Refuse(b, a, on) }
	case "slow":
		set = func(on bool) { w.shape(d.From, d.To, on) }
	}
	set(true)
	w.after(d.For, func() { set(false) })
}

// split keeps two sets of machines apart for a while.
type split struct {
	Side []int
	For  time.Duration
}

func (d *split) String() string {
	var names []string
	for _, i := range d.Side {
		names = append(names, boxName(i))
	}
	return fmt.Sprintf("%v are cut off from the rest for %s", names, d.For)
}

func (d *split) do(w *World) {
	var side, rest []string
	in := make(map[int]bool)
	for _, i := range d.Side {
		in[i] = true
	}
	for i, b := range w.boxes {
		if in[i] {
			side = append(side, b.ip())
		} else {
			rest = append(rest, b.ip())
		}
	}
	w.net.Partition(side, rest)
	w.after(d.For, func() { w.net.Partition(append(side, rest...)) })
}

// jump sets a machine's clock, ahead or behind.
type jump struct {
	Who int
	By  time.Duration
}

func (d *jump) String() string {
	return fmt.Sprintf("the clock of %s jumps by %s", boxName(d.Who), d.By)
}

func (d *jump) do(w *World) { w.boxes[d.Who].clock.Add(int64(d.By)) }

// boxName names machines in plans before they exist.
func boxName(i int) string { return fmt.Sprintf("host-%d", i) }

func stream(seed uint64, what string) *rand.Rand {
	h := uint64(14695981039346656037)
	for _, b := range []byte(what) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return rand.New(rand.NewPCG(seed, h))
}
