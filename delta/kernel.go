package delta

import (
	"fmt"
	"os"
	"slices"
)

// kernel is a way to look at spans. All give the same results; they differ in the processors that they need. Where there
// is no special one for words of some width, the one in Go does.
//
// The pointers lead to whole rows of words, one to spanRows of them, and to what a span has for as many rows.
type kernel struct {
	name string

	// diff finds the words of 1 or 2 bytes that differ: span.changed.
	diff8, diff16 func(changed *uint64, old, new *byte, rows int)
	// sort finds the classes of words of 1 or 2 bytes: span.planes.
	sort8, sort16 func(planes *[4][spanRows]uint64, words *byte, rule *sortRule, rows int)
	// rank finds, of sorted words, the members of each class and how many come before: span.members, before and totals.
	rank func(members *[spanRows][classCount]uint64, before *[spanRows][classCount]uint16, totals *[classCount]uint16,
		planes *[4][spanRows]uint64, rows int)
	// list lists the bits that are set in changed: span.places. It returns how many there are.
	list func(places *[spanWords + rowWords]uint16, changed *uint64, rows int) int
	// find lists the words of a class in spanRows rows that have one of n ranks, which are in order, up to the first of at
	// least end: span.places. It returns how many there are. Before and members lead to the class in the first row; ranks
	// are counted from begin.
	find func(places *uint16, ranks *uint32, n int, begin, end uint32, before *uint16, members *uint64) int
}

// kernelVariable names the kernel to use, for tests and to measure.
const kernelVariable = "SPARSECAST_KERNEL"

// kernels are those that this processor can run, the best first.
var kernels = append(machineKernels(), goKernel)

// active is the one in use.
var active = kernels[0]

var errKernelVariable = chooseKernel()

func chooseKernel() error {
	name := os.Getenv(kernelVariable)
	if name == "" {
		return nil
	}
	if err := UseKernel(name); err != nil {
		return fmt.Errorf("environment variable %s: %w", kernelVariable, err)
	}
	return nil
}

// CheckKernel returns an error when the environment variable names a kernel that there is not. The best is in use then.
func CheckKernel() error { return errKernelVariable }

// Kernels names the ways to code and decode that this processor can run, the best first, which is the one in use unless
// [UseKernel] or the environment variable SPARSECAST_KERNEL chose another. They give the same bytes.
func Kernels() []string {
	names := make([]string, len(kernels))
	for i, k := range kernels {
		names[i] = k.name
	}
	return names
}

// UseKernel chooses the kernel for all that begins from now on. It is for tests and measurements, while nothing else is
// coded or decoded.
func UseKernel(name string) error {
	i := slices.IndexFunc(kernels, func(k kernel) bool { return k.name == name })
	if i < 0 {
		return fmt.Errorf("kernel %q: this processor has %q", name, Kernels())
	}
	active = kernels[i]
	return nil
}
