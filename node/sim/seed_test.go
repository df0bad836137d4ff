package sim

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
)

var (
	oneSeed   = flag.Uint64("seed", 0, "run this seed alone; zero: a few")
	traceFile = flag.String("trace", "", "write what happened to this file")
	dropped   = flag.String("drop", "", "steps of the plan to leave out, by number and separated by commas")
)

// TestSeed lives through the plans of some seeds. scripts/sim runs it for many, each exactly repeatable.
func TestSeed(t *testing.T) {
	if *oneSeed != 0 {
		live(t, *oneSeed, Draw(*oneSeed).without(droppedSteps(t)))
		return
	}
	seeds := uint64(8)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) { live(t, seed+1, Draw(seed+1)) })
	}
}

// live lives through a plan.
func live(t *testing.T, seed uint64, plan *Plan) {
	t.Helper()
	cryptotest.SetGlobalRandom(t, seed)
	synctest.Test(t, func(t *testing.T) {
		trace := newTrace(t)
		w, failure := Live(t.Context(), plan, trace)
		sum, lines := trace.Sum()
		t.Logf("%s: trace %s of %d lines after %s", plan.headline(), sum, lines, w.since())
		if failure != nil {
			t.Errorf("%s", w.Report())
		}
	})
}

func newTrace(t *testing.T) *Trace {
	t.Helper()
	if *traceFile == "" {
		return NewTrace(io.Discard)
	}
	f, err := os.Create(*traceFile)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return NewTrace(f)
}

func droppedSteps(t *testing.T) (list []int) {
	t.Helper()
	for s := range strings.FieldsFuncSeq(*dropped, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	return list
}
