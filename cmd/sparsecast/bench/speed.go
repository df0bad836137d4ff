package bench

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/sparsecast/sparsecast/delta"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Speed is how fast one kernel works with so many threads. Speeds are in bytes of weights a second.
type Speed struct {
	Kernel  string  `json:"kernel"`
	Threads int     `json:"threads"`
	Cores   float64 `json:"cores"` // that encoding and applying had in the round in which they had most
	Memmove float64 `json:"memmove_bytes_per_s"`
	Encode  Rate    `json:"encode"`
	Apply   Rate    `json:"apply"`
}

// Rate is the speed of one direction.
type Rate struct {
	Speed     float64 `json:"bytes_per_s"`   // of the median round
	OfMemmove float64 `json:"of_memmove"`    // by as many threads; the median of the ratios in each round
	OfOne     float64 `json:"of_one_thread"` // fastest round against fastest round
}

// kernelVariable chooses one kernel, for the codec and for what is measured.
const kernelVariable = "SPARSECAST_KERNEL"

func kernelsToMeasure() []string {
	if name := os.Getenv(kernelVariable); name != "" {
		return []string{name}
	}
	return delta.Kernels()
}

// threadCounts are one, two and all.
func threadCounts() []int {
	all := runtime.NumCPU()
	counts := []int{1, min(2, all), all}
	slices.Sort(counts)
	return slices.Compact(counts)
}

// measureSpeed takes a pair through every kernel and number of threads, in so many rounds.
func measureSpeed(ctx context.Context, p pair, rounds int, say func(format string, args ...any)) (all []Speed, err error) {
	b := &stopwatch{pair: p, got: delta.NewMemory(p.new.Schema())}
	kernels := kernelsToMeasure()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	defer func() { err = cmp.Or(err, delta.UseKernel(kernels[0])) }()
	for _, kernel := range kernels {
		if err := delta.UseKernel(kernel); err != nil {
			return nil, err
		}
		say("speed of kernel %s", kernel)
		timed, err := b.measure(ctx, threadCounts(), rounds)
		if err != nil {
			return nil, err
		}
		for i, threads := range threadCounts() {
			s := timed[i].speed(float64(p.new.Schema().Bytes()), timed[0])
			s.Kernel, s.Threads = kernel, threads
			all = append(all, s)
		}
	}
	return all, nil
}

// stopwatch holds what is timed.
type stopwatch struct {
	pair
	got  *delta.Memory // the copy, and what is decoded
	edge coded
}

// measure times every number of threads in every round, after one round that finds memory and is not counted.
func (b *stopwatch) measure(ctx context.Context, threads []int, rounds int) ([]times, error) {
	timed := make([]times, len(threads))
	for round := range rounds + 1 {
		for i, n := range threads {
			runtime.GOMAXPROCS(n)
			l, err := b.lap(ctx, n)
			if err != nil {
				return nil, err
			}
			if round > 0 {
				timed[i].add(l)
			}
		}
	}
	return timed, nil
}

// lap is the seconds that a copy, encoding and applying take, one after the other, and those of processors that the latter
// two take together.
type lap struct {
	move, encode, apply, cpu float64
}

func (b *stopwatch) lap(ctx context.Context, threads int) (l lap, err error) {
	l.move = seconds(func() { copyState(b.got, b.new, threads) })
	before := cpuSeconds()
	l.encode = seconds(func() { err = b.edge.code(ctx, b.pair) })
	if err == nil {
		l.apply = seconds(func() { err = b.edge.apply(ctx, b.old, b.got) })
	}
	l.cpu = cpuSeconds() - before
	return l, err
}

// cpuSeconds is what this process has had of all processors so far.
func cpuSeconds() float64 {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

// times are those of all rounds.
type times struct {
	moves, encodes, applies []float64
	cores                   float64 // the most of any round
}

func (t *times) add(l lap) {
	t.moves, t.encodes, t.applies = append(t.moves, l.move), append(t.encodes, l.encode), append(t.applies, l.apply)
	t.cores = max(t.cores, l.cpu/(l.encode+l.apply))
}

// speed tells how fast a state of so many bytes was dealt with, and how much faster than by one thread.
func (t times) speed(bytes float64, one times) Speed {
	return Speed{
		Cores:   t.cores,
		Memmove: bytes / median(t.moves),
		Encode:  rateOf(bytes, t.encodes, t.moves, one.encodes),
		Apply:   rateOf(bytes, t.applies, t.moves, one.applies),
	}
}

// rateOf compares each round with the copy in it, but the fastest round with that of one thread: on a shared machine, most
// rounds of several threads wait for others that want the same cores.
func rateOf(bytes float64, took, moves, one []float64) Rate {
	ratios := make([]float64, len(took))
	for i, n := range took {
		ratios[i] = moves[i] / n
	}
	return Rate{Speed: bytes / median(took), OfMemmove: median(ratios), OfOne: slices.Min(one) / slices.Min(took)}
}

// copyPiece is what a thread copies at a time.
const copyPiece = 1 << 20

// copyState copies all tensors by so many threads, each of which takes every so manieth piece.
func copyState(to, from *delta.Memory, threads int) {
	var g errgroup.Group
	for mine := range threads {
		g.Go(func() error {
			piece := 0
			for t := range from.Schema().Tensors() {
				dst, src := to.Tensor(t), from.Tensor(t)
				for at := 0; at < len(src); at += copyPiece {
					if piece%threads == mine {
						end := min(at+copyPiece, len(src))
						copy(dst[at:end], src[at:end])
					}
					piece++
				}
			}
			return nil
		})
	}
	_ = g.Wait() // none fails
}

func seconds(do func()) float64 {
	begun := time.Now()
	do()
	return time.Since(begun).Seconds()
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}

// repeated returns a pair with as many copies of all tensors as are needed for so many bytes: in small states everything
// stays in the cache, which no model does.
func repeated(p pair, bytes uint64) (pair, int, error) {
	dense := p.new.Schema().Bytes()
	if dense == 0 || dense >= bytes {
		return p, 1, nil
	}
	copies := int(min((bytes+dense-1)/dense, maxCopies))
	var list []delta.Tensor
	for k := range copies {
		for _, t := range p.new.Schema().Tensors() {
			t.Name = fmt.Sprintf("%s%s%06d", t.Name, copyMark, k)
			list = append(list, t)
		}
	}
	schema, err := delta.NewSchema(list)
	if err != nil {
		return p, 0, err
	}
	many := pair{delta.NewMemory(schema), delta.NewMemory(schema)}
	own := p.new.Schema().Tensors()
	for i, t := range schema.Tensors() {
		name := t.Name[:strings.LastIndex(t.Name, copyMark)]
		k := slices.IndexFunc(own, func(t delta.Tensor) bool { return t.Name == name })
		copy(many.old.Tensor(i), p.old.Tensor(k))
		copy(many.new.Tensor(i), p.new.Tensor(k))
	}
	return many, copies, nil
}

// maxCopies bounds the number of tensors that tiny states are blown up to.
const maxCopies = 100

// copyMark is between the name of a tensor and the number of its copy.
const copyMark = " copy "
