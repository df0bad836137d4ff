// Sim runs the simulation of node/sim for many seeds, each in a process of its own whose runtime draws from the seed
// too, so that a failing seed fails again, step for step. See node/sim/overlay for how.
//
//	go run ./scripts/sim -first 1 -seeds 300
//	go run ./scripts/sim -first 42 -seeds 1 -keep        # the trace of one seed
//	go run ./scripts/sim -seeds 20 -repeat 3             # prove that runs of a seed are the same
//	go run ./scripts/sim -overlay bug.json               # with planted bugs, as lists of {"file", "old", "new"}
//
// It exits with 1 when a seed fails, and says how to run that one again. Each that fails it runs once more by itself, to say
// whether it does the same again.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/sparsecast/sparsecast/node/sim/overlay"
)

// options are the flags.
type options struct {
	first, seeds uint64
	repeat, jobs int
	run, pkg     string
	overlays     string
	patience     time.Duration
	dir          string
	keep, json   bool
}

func main() {
	var o options
	flag.Uint64Var(&o.first, "first", 1, "the first seed; not zero")
	flag.Uint64Var(&o.seeds, "seeds", 100, "how many seeds")
	flag.IntVar(&o.repeat, "repeat", 1, "run each seed this often, and fail where two runs differ")
	flag.IntVar(&o.jobs, "j", runtime.NumCPU(), "processes at a time")
	flag.StringVar(&o.run, "run", "TestSeed", "the test")
	flag.StringVar(&o.pkg, "pkg", "./node/sim", "its package")
	flag.StringVar(&o.overlays, "overlay", "", "more changes to sources: files, with commas between")
	flag.DurationVar(&o.patience, "timeout", 5*time.Minute, "for one run")
	flag.StringVar(&o.dir, "dir", "", "for the binary and traces; a temporary one unless set")
	flag.BoolVar(&o.keep, "keep", false, "keep the traces of seeds that pass, too")
	flag.BoolVar(&o.json, "json", false, "summarise in JSON on standard output")
	flag.Parse()
	failed, err := simulate(&o)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(2)
	case failed:
		os.Exit(1)
	}
}

func simulate(o *options) (failed bool, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if flag.NArg() > 0 || o.first == 0 || o.repeat < 1 || o.jobs < 1 {
		return false, fmt.Errorf("flags: no arguments are taken, and -first, -repeat and -j are at least 1; see -h")
	}
	temporary := o.dir == ""
	if temporary {
		if o.dir, err = os.MkdirTemp("", "sparsecast-sim-"); err != nil {
			return false, err
		}
	} else if o.dir, err = filepath.Abs(o.dir); err != nil {
		return false, err
	}
	binary, err := build(ctx, o)
	if err != nil {
		return false, err
	}
	s := o.all(ctx, binary)
	if temporary && len(s.Failures) == 0 && !o.keep {
		err = os.RemoveAll(o.dir)
	}
	if o.json {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		return len(s.Failures) > 0, out.Encode(s)
	}
	fmt.Print(s)
	return len(s.Failures) > 0, err
}

// build compiles the test once, with the repeatable runtime and what else is to be changed.
func build(ctx context.Context, o *options) (string, error) {
	patches := overlay.Replay()
	for name := range strings.SplitSeq(o.overlays, ",") {
		if name == "" {
			continue
		}
		more, err := overlay.Load(name)
		if err != nil {
			return "", err
		}
		patches = append(patches, more...)
	}
	src := filepath.Join(o.dir, "src")
	if err := os.MkdirAll(src, 0o700); err != nil {
		return "", err
	}
	fmt.Fprintln(os.Stderr, "sim: building; the first time this takes a minute or two")
	binary := filepath.Join(o.dir, "sim.test")
	return binary, overlay.BuildTest(ctx, ".", src, o.pkg, binary, patches)
}
