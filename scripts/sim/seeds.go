package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sparsecast/sparsecast/node/sim/overlay"
)

// summary is what came of all seeds.
type summary struct {
	Seeds    uint64    `json:"seeds"`
	Runs     int       `json:"runs"`
	Seconds  float64   `json:"seconds"`
	Failures []failure `json:"failures"`
}

// failure is a seed that failed, or of which two runs differed.
type failure struct {
	Seed   uint64 `json:"seed"`
	Why    string `json:"why"`
	Trace  string `json:"trace"`  // a file
	Replay string `json:"replay"` // a shell command
	Exact  string `json:"exact"`  // whether that shows the same again
}

// String is for people.
func (s *summary) String() string {
	var b strings.Builder
	for _, f := range s.Failures {
		fmt.Fprintf(&b, "seed %d failed:\n%s\ntrace: %s\nagain: %s\n       %s\n\n", f.Seed, f.Why, f.Trace, f.Replay, f.Exact)
	}
	fmt.Fprintf(&b, "%d of %d seeds failed in %d runs, %.0f s\n", len(s.Failures), s.Seeds, s.Runs, s.Seconds)
	return b.String()
}

// all runs every seed, some at a time.
func (o *options) all(ctx context.Context, binary string) *summary {
	s := &summary{Failures: []failure{}}
	begun := time.Now()
	var (
		mu    sync.Mutex // guards s and said
		said  = begun
		work  sync.WaitGroup
		seeds = make(chan uint64)
	)
	for range o.jobs {
		work.Go(func() {
			for seed := range seeds {
				f := o.seed(ctx, binary, seed)
				if f != nil && f.Exact == "" {
					f.Exact = o.confirm(ctx, binary, f)
				}
				mu.Lock()
				s.Seeds++
				s.Runs += o.repeat
				if f != nil {
					s.Failures = append(s.Failures, *f)
				}
				if time.Since(said) > 10*time.Second {
					said = time.Now()
					left := time.Since(begun) / time.Duration(s.Seeds) * time.Duration(o.seeds-s.Seeds)
					fmt.Fprintf(os.Stderr, "sim: %d of %d seeds, %d failed, about %s left\n",
						s.Seeds, o.seeds, len(s.Failures), left.Round(time.Second))
				}
				mu.Unlock()
			}
		})
	}
	for i := range o.seeds {
		if ctx.Err() != nil {
			break
		}
		seeds <- o.first + i
	}
	close(seeds)
	work.Wait()
	slices.SortFunc(s.Failures, func(a, b failure) int { return int(int64(a.Seed) - int64(b.Seed)) }) //nolint:gosec // an order only
	s.Seconds = time.Since(begun).Seconds()
	return s
}

// seed runs one seed as often as is asked for; nil means well.
func (o *options) seed(ctx context.Context, binary string, seed uint64) *failure {
	var first, last string
	for i := range o.repeat {
		dir := filepath.Join(o.dir, fmt.Sprintf("seed-%d-%d", seed, i))
		sum, err := o.once(ctx, binary, seed, dir)
		f := &failure{Seed: seed, Trace: filepath.Join(dir, traceName), Replay: o.again(seed)}
		switch {
		case ctx.Err() != nil:
			return nil // stopped: this says nothing of the seed
		case err != nil:
			f.Why = err.Error()
			return f
		case first != "" && sum != first:
			f.Why, f.Exact = "two runs differ: compare the trace with that in "+last, "NOT EXACT"
			return f
		case !o.keep && last != "" || !o.keep && o.repeat == 1:
			_ = os.RemoveAll(dir) // of no more use
		}
		if first == "" {
			first, last = sum, dir
		}
	}
	if !o.keep {
		_ = os.RemoveAll(last)
	}
	return nil
}

// confirm runs a seed that failed once more, and says whether that was the same run.
func (o *options) confirm(ctx context.Context, binary string, f *failure) string {
	dir := filepath.Join(o.dir, fmt.Sprintf("seed-%d-again", f.Seed))
	_, failed := o.once(ctx, binary, f.Seed, dir)
	switch {
	case ctx.Err() != nil:
		return "NOT SHOWN TO BE EXACT: stopped"
	case failed == nil:
		return "NOT EXACT: run once more, it passed"
	}
	was, err := traceSum(filepath.Dir(f.Trace))
	is, errAgain := traceSum(dir)
	if err = errors.Join(err, errAgain); err != nil {
		return "NOT SHOWN TO BE EXACT: " + err.Error()
	}
	if was != is {
		return "NOT EXACT: run once more, the trace was another, " + filepath.Join(dir, traceName)
	}
	_ = os.RemoveAll(dir)
	return "exact: run once more, the trace was the same"
}

func (o *options) again(seed uint64) string {
	cmd := fmt.Sprintf("go run ./scripts/sim -first %d -seeds 1 -keep -run %s -pkg %s", seed, o.run, o.pkg)
	if o.overlays != "" {
		cmd += " -overlay " + o.overlays
	}
	return cmd
}

// traceName is the file that a run says everything in that happens.
const traceName = "trace"

// traceSum is the hash of the trace in dir, however the run ended.
func traceSum(dir string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(dir, traceName))
	if err != nil {
		return "", fmt.Errorf("no trace: %w", err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(raw)), nil
}

// once runs one seed in dir and returns the hash of its trace. Arguments and environment are the same for every run of
// a seed, wherever it runs: even their number decides where memory lies.
func (o *options) once(ctx context.Context, binary string, seed uint64, dir string) (string, error) {
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	number := fmt.Sprint(seed)
	//nolint:gosec // what we have just built
	cmd := exec.CommandContext(ctx, binary, "-test.run", "^"+o.run+"$", "-test.v", "-test.timeout", "0", "-seed", number, "-trace", traceName)
	cmd.Args[0] = filepath.Base(binary)
	cmd.Dir = dir
	cmd.Env = []string{
		"GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1,gcstoptheworld=1,memprofilerate=0", "GOTRACEBACK=all", overlay.SeedVariable + "=" + number,
	}
	cmd.WaitDelay = 5 * time.Second
	said, err := cmd.CombinedOutput()
	if ctx.Err() == context.DeadlineExceeded {
		err = fmt.Errorf("not done within %s", o.patience)
	}
	if err != nil {
		_ = os.WriteFile(filepath.Join(dir, "output"), said, 0o600)
		return "", fmt.Errorf("%w\n%s", err, tail(said, 4000))
	}
	sum, err := traceSum(dir)
	if err != nil {
		return "", fmt.Errorf("test %s: %w; is there such a test?\n%s", o.run, err, tail(said, 4000))
	}
	return sum, nil
}

// tail is the end of a long output.
func tail(said []byte, most int) []byte {
	said = bytes.TrimSpace(said)
	return said[max(0, len(said)-most):]
}
