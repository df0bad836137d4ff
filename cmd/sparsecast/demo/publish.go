package demo

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sparsecast/sparsecast/node/api"
	"golang.org/x/sync/errgroup"
)

// updateTimeout bounds the wait for one update to be ready everywhere.
const updateTimeout = 10 * time.Minute

// publishAll publishes one step after the other, and goes on when all rollouts have it ready and compared.
func publishAll(ctx context.Context, f *fleet, steps []string) (*report, error) {
	r := &report{Rollouts: len(f.rollouts), Identical: true}
	r.header()
	for i, path := range steps[1:] {
		v, err := publishOne(ctx, f, path, uint64(i+1))
		if err != nil {
			return nil, fmt.Errorf("update %d: %w", i+1, err)
		}
		r.add(v)
	}
	return r, r.account(ctx, f)
}

func publishOne(ctx context.Context, f *fleet, path string, number uint64) (versionReport, error) {
	ctx, cancel := context.WithTimeout(ctx, updateTimeout)
	defer cancel()
	line := newLine()
	defer line.clear()
	line.set("  %d: coding", number)
	p, err := f.trainer.client.Publish(ctx, api.PublishRequest{Path: path, Number: &number})
	if err != nil {
		return versionReport{}, err
	}
	stop := f.watch(ctx, line, number)
	places, ready, err := f.pullAll(ctx, p.VersionInfo)
	stop()
	if err != nil {
		return versionReport{}, err
	}
	line.set("  %d: comparing", number)
	same, err := compare(path, places)
	slices.Sort(ready)
	return versionReport{
		Number: number, Changed: p.Changed, Elements: p.Elements, Dense: p.Dense, Coded: p.Coded, Identical: same,
		Ready: readyTimes{First: ready[0], Median: ready[len(ready)/2], Last: ready[len(ready)-1]},
	}, err
}

// pullAll waits for all rollouts and returns where each has the version, and how many milliseconds after the publish
// it was ready. All run on one clock.
func (f *fleet) pullAll(ctx context.Context, v api.VersionInfo) (places []string, ready []int64, err error) {
	places, ready = make([]string, len(f.rollouts)), make([]int64, len(f.rollouts))
	g, ctx := errgroup.WithContext(ctx)
	for i, p := range f.rollouts {
		g.Go(func() error {
			r, err := p.client.Pull(ctx, api.PullRequest{Number: &v.Number, Epoch: &v.Epoch})
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			places[i], ready[i] = r.Path, r.Version.ReadyAt-v.PublishedAt
			return nil
		})
	}
	return places, ready, g.Wait()
}

// watch draws the progress of the rollouts until stop is called.
func (f *fleet) watch(ctx context.Context, line *line, number uint64) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		for {
			text := ""
			for _, p := range f.rollouts {
				text += "  " + f.glance(ctx, p, number)
			}
			line.set("  %d:%s", number, text)
			select {
			case <-ctx.Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

func (f *fleet) glance(ctx context.Context, p *process, number uint64) string {
	s, err := p.client.Status(ctx)
	switch {
	case err != nil:
		return "?"
	case s.Served != nil && s.Served.Number >= number:
		return api.StateReady
	case s.Progress != nil:
		return fmt.Sprintf("%d/%d chunks", s.Progress.ChunksDone, s.Progress.ChunksTotal)
	}
	return s.State
}
