package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
	"github.com/sparsecast/sparsecast/node/files/faults"
)

// program is the training program beside a trainer's node. It steps, writes checkpoints and asks the node to publish
// them, and asks again when that fails, as a user's script would.
type program struct {
	b      *box
	jobs   chan *publish
	stop   context.CancelFunc
	ctx    context.Context
	mu     sync.Mutex // guards what follows
	mount  *faults.Mount
	past   []*weights // all steps so far
	files  int
	fresh  bool               // the next publish is to begin a new epoch
	epochs map[uint64]bool    // in which a publish succeeded, since the data directory was emptied
	ever   map[uint64]bool    // in which one ever did
	acked  *api.PublishResult // the last publish that succeeded
}

// Pauses and patience of the program, in virtual time.
const (
	retryPublish  = 3 * time.Second
	publishWithin = 45 * time.Second
)

func newProgram(b *box) *program {
	p := &program{b: b, jobs: make(chan *publish, 64), past: []*weights{b.w.base}, epochs: make(map[uint64]bool), ever: make(map[uint64]bool)}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

func (p *program) run() {
	for {
		select {
		case <-p.ctx.Done():
			return
		case d := <-p.jobs:
			p.publish(d)
		}
	}
}

func (p *program) enqueue(d *publish) {
	select {
	case p.jobs <- d:
	default:
		p.b.w.note("the program on %s is too far behind to publish", p.b.name())
	}
}

// clear has the program forget what it was to publish and has not begun with, as when its user starts it again.
func (p *program) clear() {
	for {
		select {
		case <-p.jobs:
		default:
			return
		}
	}
}

// close ends the program. It may be nil, as there is none beside most nodes.
func (p *program) close() {
	if p != nil {
		p.stop()
	}
}

// rewind goes back some steps, and asks for a new epoch if so told.
func (p *program) rewind(back int, fresh bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fresh = p.fresh || fresh
	p.past = p.past[:max(1, len(p.past)-back)]
}

// disk is the program's own view of the machine's disk; after a loss of power it is a new one.
func (p *program) disk() *faults.Mount {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mount == nil {
		p.mount = p.b.disk.Mount()
	}
	return p.mount
}

// reboot is for a loss of power.
func (p *program) reboot() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mount = nil
}

// step trains.
func (p *program) step(d *publish) (w *weights, number uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.Change == undo {
		w = p.past[max(0, len(p.past)-2)]
	} else {
		w = p.past[len(p.past)-1].next(rand.New(rand.NewPCG(d.Seed, 7)), d.Change)
	}
	p.past = append(p.past, w)
	return w, uint64(len(p.past) - 1)
}

// publish takes a step and publishes it, and gives up after a while.
func (p *program) publish(d *publish) {
	w, n := p.step(d)
	number := &n
	ctx, cancel := context.WithTimeout(p.ctx, publishWithin)
	defer cancel()
	for ctx.Err() == nil {
		p.b.w.oracle.hand(p.b.index, w, number)
		r, err := p.attempt(ctx, d, w, number)
		if err == nil {
			p.succeeded(r)
			return
		}
		p.b.w.note("the program on %s: publish: %v", p.b.name(), err)
		if refused := new(api.Error); errors.As(err, &refused) {
			number = nil // the number may be taken by a publish that we heard nothing of
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryPublish):
		}
	}
}

func (p *program) attempt(ctx context.Context, d *publish, w *weights, number *uint64) (r api.PublishResult, err error) {
	n := p.b.alive()
	if n == nil {
		return r, errors.New("no node is up")
	}
	req := api.PublishRequest{Number: number, Full: d.Full, NewEpoch: p.wantsEpoch()}
	if err := p.save(w, &req); err != nil {
		return r, fmt.Errorf("write checkpoint: %w", err)
	}
	stopped := hasStopped(n.Status(ctx))
	r, err = n.Publish(ctx, req)
	if err == nil && stopped {
		p.b.w.violate(stopsForGood, "%s: published %d of epoch %d", p.b.name(), r.Number, r.Epoch)
	}
	return r, err
}

// hasStopped tells whether a trainer says that another one with its key is at work, so that it stops until a restart.
func hasStopped(s api.Status) bool { return strings.Contains(s.Error, "nothing is published any more") }

// save writes checkpoints under new names, after removing those before, and puts their names into a request.
func (p *program) save(w *weights, req *api.PublishRequest) error {
	disk := p.disk()
	if err := disk.RemoveAll(steps); err != nil {
		return err
	}
	p.files++
	dir := path.Join(steps, fmt.Sprintf("step-%d", p.files))
	files := w.files()
	for _, state := range w.form.names() {
		name := path.Join(dir, state, weightsFile)
		if err := writeTo(disk, name, files[state]); err != nil {
			return err
		}
		if state == "" {
			req.Path = name
			continue
		}
		if req.Paths == nil {
			req.Paths = make(map[string]string)
		}
		req.Paths[state] = name
	}
	return nil
}

func writeTo(disk *faults.Mount, name string, data []byte) error {
	if err := disk.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := disk.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, fs.FileMode(0o644))
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	return errors.Join(err, f.Close())
}

func (p *program) succeeded(r api.PublishResult) {
	v := mesh.Version{Epoch: r.Epoch, Number: r.Number}
	p.b.w.note("the program on %s published %s", p.b.name(), v)
	if err := p.b.w.oracle.see(v, r.Root); err != nil {
		p.b.w.violate(oneRoot, "%s: publish: %v", p.b.name(), err)
	}
	p.b.knew(v)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acked, p.fresh = &r, false
	p.epochs[r.Epoch], p.ever[r.Epoch] = true, true
}

// opened tells whether a version of the epoch was published here, so that the catalogue of that epoch is of this node.
func (p *program) opened(epoch uint64) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.epochs[epoch]
}

// everOpened is opened that remembers also what has been forgotten.
func (p *program) everOpened(epoch uint64) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ever[epoch]
}

// forget is for a data directory that was emptied: what is offered is what others still have.
func (p *program) forget() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.epochs)
}

func (p *program) wantsEpoch() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fresh
}

// last returns the publish that succeeded last, nil for none.
func (p *program) last() *api.PublishResult {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.acked
}
