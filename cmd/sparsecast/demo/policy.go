package demo

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/dustin/go-humanize"
	"github.com/sparsecast/sparsecast/cmd/sparsecast/policy"
)

// makePolicy writes a policy and its updates to dir.
func makePolicy(ctx context.Context, o Options, dir string) (paths []string, err error) {
	p, err := policy.New(policy.Spec{Bytes: o.Size, Updates: o.Updates, LR: o.LR, Seed: 1})
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := checkSpace(dir, p.Bytes()*int64(p.States()+o.copies())); err != nil {
		return nil, err
	}
	paths, drafts, err := draftsOf(dir, p.States(), p.Tensors())
	defer func() {
		for _, d := range drafts {
			err = errors.Join(err, d.Abort()) // nothing to do after a commit
		}
	}()
	if err != nil {
		return nil, err
	}
	sinks := make([]policy.Sink, len(drafts))
	for i, d := range drafts {
		sinks[i] = d
	}
	fmt.Printf("making a policy of %s in %d tensors and %d updates at learning rate %g\n",
		humanize.Bytes(uint64(p.Bytes())), len(p.Tensors()), o.Updates, o.LR)
	line := newLine()
	err = p.Write(ctx, sinks, func(done int64) {
		line.set("  %3.0f %%", 100*float64(done)/float64(p.Bytes()*int64(p.States())))
	})
	line.clear()
	for _, d := range drafts {
		if err == nil {
			err = d.Commit()
		}
	}
	return paths, err
}
