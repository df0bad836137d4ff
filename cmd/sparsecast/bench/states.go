package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/sparsecast/sparsecast/delta"
)

// states are those that follow each other, the oldest first.
type states interface {
	names() []string
	load(ctx context.Context, i int) (*delta.Memory, error)
	fileBytes(i int) (uint64, error) // of the files that state i is kept in
}

// stepName is what the checkpoint of a step is called: step_000042.safetensors, or a directory such as global_step_42 or
// checkpoint-42.
var stepName = regexp.MustCompile(`(?:step|checkpoint)[_-]?([0-9]{1,18})(?:\.safetensors)?$`)

// steps are the checkpoints of a run on a disk.
type steps []step

type step struct {
	number int
	path   string
}

// findSteps returns the checkpoints of steps from first to last in dir, which must be of one schema.
func findSteps(dir string, first, last int) (steps, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all steps
	for _, e := range entries {
		if m := stepName.FindStringSubmatch(e.Name()); m != nil {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", e.Name(), err)
			}
			all = append(all, step{n, filepath.Join(dir, e.Name())})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s holds no checkpoints of steps: they are called step_000042.safetensors, or are directories such as global_step_42 or checkpoint-42", dir)
	}
	found := slices.DeleteFunc(slices.Clone(all), func(s step) bool { return s.number < first || s.number > last })
	slices.SortStableFunc(found, func(a, b step) int { return a.number - b.number })
	if len(found) < 2 {
		return nil, fmt.Errorf("%s holds the checkpoints of %d steps, %d of them asked for: two at least are needed, to compare", dir, len(all), len(found))
	}
	for i := 1; i < len(found); i++ {
		if found[i].number == found[i-1].number {
			return nil, fmt.Errorf("%s and %s are of the same step: leave one in the directory", found[i-1].path, found[i].path)
		}
	}
	return found, found.check()
}

// check wants all of one schema.
func (s steps) check() error {
	var before *delta.Schema
	for i, at := range s {
		c, err := delta.OpenCheckpoint(at.path)
		if err != nil {
			return err
		}
		c.Close()
		if before != nil && !before.ID().Equals(c.Schema().ID()) {
			return fmt.Errorf("%s and %s differ in tensor names, dtypes or shapes: no delta leads from one to the other; "+
				"leave them out with --first and --last", s[i-1].path, at.path)
		}
		before = c.Schema()
	}
	return nil
}

func (s steps) names() []string {
	names := make([]string, len(s))
	for i, at := range s {
		names[i] = strconv.Itoa(at.number)
	}
	return names
}

// load reads a checkpoint into memory.
func (s steps) load(ctx context.Context, i int) (*delta.Memory, error) {
	c, err := delta.OpenCheckpoint(s[i].path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	m := delta.NewMemory(c.Schema())
	for t := range c.Schema().Tensors() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := c.ReadAt(t, m.Tensor(t), 0); err != nil {
			return nil, fmt.Errorf("%s: %w", s[i].path, err)
		}
	}
	return m, nil
}

func (s steps) fileBytes(i int) (n uint64, err error) {
	c, err := delta.OpenCheckpoint(s[i].path)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	for _, path := range c.Files() {
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		n += uint64(info.Size())
	}
	return n, nil
}
