package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize"
	"github.com/sparsecast/sparsecast/delta/safetensors"
	"github.com/sparsecast/sparsecast/node/files"
)

// Options are what the demo can be asked for.
type Options struct {
	Steps    string // directory of a recorded run; empty makes a policy
	Rollouts int
	Size     int64 // bytes of the policy that is made
	Updates  int
	LR       float64
	JSON     string // file for the result, empty for none
	Dir      string // working directory, kept; empty for a temporary one
}

// Run shows the demo on standard output and returns an error unless all rollouts end with the trainer's bits.
func Run(ctx context.Context, o Options) (err error) {
	if o.Rollouts < 1 || o.Rollouts > 64 {
		return fmt.Errorf("%d rollouts: want 1 to 64", o.Rollouts)
	}
	dir, done, err := workDir(o.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	steps, err := o.source(ctx, dir)
	if err != nil {
		return err
	}
	fleet, err := startFleet(ctx, dir, steps[0], o.Rollouts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fleet.stop()) }()
	r, err := publishAll(ctx, fleet, steps)
	if err != nil {
		return fmt.Errorf("%w%s", err, fleet.lastWords())
	}
	return r.finish(o.JSON)
}

// workDir returns where the demo works and what to do with it at the end.
func workDir(dir string) (string, func() error, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", nil, err
		}
		if old, _ := filepath.Glob(filepath.Join(dir, "*", "node.yaml")); len(old) > 0 {
			return "", nil, fmt.Errorf("%s holds an earlier demo: remove it or name another directory", dir)
		}
		abs, err := filepath.Abs(dir)
		return abs, func() error { return nil }, err
	}
	dir, err := os.MkdirTemp("", "sparsecast-")
	return dir, func() error { return os.RemoveAll(dir) }, err
}

// source returns the checkpoints to publish in order, the base first.
func (o Options) source(ctx context.Context, dir string) ([]string, error) {
	if o.Steps == "" {
		return makePolicy(ctx, o, filepath.Join(dir, "steps"))
	}
	steps, err := filepath.Glob(filepath.Join(o.Steps, "step_*.safetensors"))
	if err != nil || len(steps) < 2 {
		return nil, fmt.Errorf("%s: %d files step_*.safetensors, want a base and at least one update", o.Steps, len(steps))
	}
	for i, s := range steps { // Glob sorts, and the numbers have leading zeros
		if steps[i], err = filepath.Abs(s); err != nil {
			return nil, err
		}
	}
	info, err := os.Stat(steps[0])
	if err != nil {
		return nil, err
	}
	fmt.Printf("recorded run %s: %d checkpoints of %s\n", o.Steps, len(steps), humanize.Bytes(uint64(info.Size())))
	return steps, checkSpace(dir, int64(o.copies())*info.Size())
}

// copies is how many copies of the state the fleet holds at most: two slots a node.
func (o Options) copies() int { return 2 * (o.Rollouts + 1) }

// checkSpace says early and clearly when the disk is too small.
func checkSpace(dir string, need int64) error {
	free, err := files.Free(dir)
	if err != nil {
		return err
	}
	need += need/20 + 64<<20 // code, logs
	if uint64(need) > free {
		return fmt.Errorf("the demo needs %s on the disk of %s and %s are free: use --size, --updates or --rollouts to make it smaller, or --dir for another disk",
			humanize.Bytes(uint64(need)), dir, humanize.Bytes(free))
	}
	return nil
}

// draftsOf begins one checkpoint a step in dir.
func draftsOf(dir string, n int, tensors []safetensors.Tensor) (paths []string, drafts []*safetensors.Writer, err error) {
	for i := range n {
		path := filepath.Join(dir, fmt.Sprintf("step_%06d.safetensors", i))
		w, err := safetensors.Create(path, tensors, map[string]string{"format": "pt"})
		if err != nil {
			return nil, drafts, err
		}
		paths, drafts = append(paths, path), append(drafts, w)
	}
	return paths, drafts, nil
}
