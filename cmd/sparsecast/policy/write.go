package policy

import (
	"context"
	"fmt"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// maxWorkers bounds memory: a worker holds one block, about 290 KiB.
const maxWorkers = 128

// Sink takes the bytes of one state.
type Sink interface {
	// WriteAt stores p, which it must not keep, at byte off of tensor number tensor.
	// It is called from several goroutines at once, never twice for the same bytes.
	WriteAt(tensor int, p []byte, off int64) error
}

// Write computes all states and puts the one after update t into sinks[t]; sinks[0] gets the base.
// progress may be nil; otherwise it is called with the bytes of all states written so far, a growing number, and
// not concurrently. Write returns when all its workers have, at the first error or the end of ctx.
func (p *Policy) Write(ctx context.Context, sinks []Sink, progress func(doneBytes int64)) error {
	if len(sinks) != p.States() {
		return fmt.Errorf("policy: %d sinks for %d states: give one for the base and one for each update", len(sinks), p.States())
	}
	w := &writer{policy: p, sinks: sinks, progress: progress}
	group, ctx := errgroup.WithContext(ctx)
	for range min(int64(runtime.GOMAXPROCS(0)), maxWorkers, p.blocks) {
		group.Go(func() error { return w.work(ctx) })
	}
	return group.Wait()
}

// writer is one call of Write: workers that take block after block.
type writer struct {
	policy *Policy
	sinks  []Sink
	next   atomic.Int64 // first block that nobody has taken

	mu       sync.Mutex // guards done and calls of progress
	done     int64
	progress func(int64)
}

func (w *writer) work(ctx context.Context) error {
	b := new(block)
	for {
		number := w.next.Add(1) - 1
		if number >= w.policy.blocks {
			return nil
		}
		if err := w.block(ctx, b, number); err != nil {
			return err
		}
		w.report(int64(2*b.n) * int64(len(w.sinks)))
	}
}

// block runs one block through all updates, using b for its state.
func (w *writer) block(ctx context.Context, b *block, number int64) error {
	t := w.policy.tensorOf(number)
	number -= t.first
	lr := float32(w.policy.spec.LR)
	for step, sink := range w.sinks {
		if err := ctx.Err(); err != nil {
			return err
		}
		if step == 0 {
			b.start(t, number)
		} else {
			b.update(lr, t.gradient, t.random(keyUpdate, uint64(number), uint64(step)))
		}
		if err := sink.WriteAt(t.index, b.round(), 2*blockLen*number); err != nil {
			return fmt.Errorf("policy: write %s after update %d: %w", t.name, step, err)
		}
	}
	return nil
}

func (w *writer) report(n int64) {
	if w.progress == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done += n
	w.progress(w.done)
}

// tensorOf returns the tensor that holds a block, numbered through all tensors.
func (p *Policy) tensorOf(block int64) *tensor {
	after := sort.Search(len(p.tensors), func(i int) bool { return p.tensors[i].first > block })
	return &p.tensors[after-1]
}
