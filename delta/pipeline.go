package delta

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// maxWorkers bounds memory on wide machines: a worker holds about 2 MiB, and those that are at heavy frames more. What
// holds whole frames, as anchors do, has wholeWorkers, of about 16 MiB.
const (
	maxWorkers   = 32
	wholeWorkers = 8
)

func workersFor(wholeFrames bool) int {
	if wholeFrames {
		return wholeWorkers
	}
	return maxWorkers
}

// inOrder runs jobs on all cores, but by no more workers than most, and collects their results in the order of the jobs. Produce, called once, hands
// the jobs to yield until that returns false; newWorker makes a worker with scratch memory of its own, which takes the
// next job when it is done with one. Produce and collect each run in one goroutine. The first error ends everything,
// and the context that workers hear.
func inOrder[J, R any](ctx context.Context, most int, produce func(yield func(J) bool) error,
	newWorker func() func(context.Context, J) (R, error), collect func(R) error,
) error {
	type task struct {
		job  J
		done chan R
	}
	n := min(runtime.GOMAXPROCS(0), most)
	g, ctx := errgroup.WithContext(ctx)
	tasks := make(chan task)
	inFlight := make(chan chan R, n) // in the order of the jobs; its size bounds the results that wait

	g.Go(func() error {
		defer close(tasks)
		defer close(inFlight)
		err := produce(func(j J) bool {
			t := task{j, make(chan R, 1)}
			return send(ctx, inFlight, t.done) && send(ctx, tasks, t)
		})
		if err != nil {
			return err
		}
		return ctx.Err()
	})
	for range n {
		g.Go(func() error {
			work := newWorker()
			for t := range tasks {
				r, err := work(ctx, t.job)
				if err != nil {
					return err
				}
				t.done <- r
			}
			return nil
		})
	}
	g.Go(func() error {
		for done := range inFlight {
			select {
			case r := <-done:
				if err := collect(r); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	return g.Wait()
}

// send reports whether v was taken before ctx ended.
func send[T any](ctx context.Context, c chan<- T, v T) bool {
	select {
	case c <- v:
		return true
	case <-ctx.Done():
		return false
	}
}
