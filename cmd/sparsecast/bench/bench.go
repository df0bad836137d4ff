package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/dustin/go-humanize"
	"github.com/sparsecast/sparsecast/cmd/sparsecast/policy"
	"github.com/sparsecast/sparsecast/delta"
)

// Options are what can be asked for.
type Options struct {
	Steps       string // directory with the checkpoints of steps; empty makes a policy up
	First, Last int    // steps to begin and end with
	Size        int64  // bytes of the policy that is made up
	LR          float64
	Seed        uint64
	Peers       bool   // measure others too
	Squash      bool   // measure the delta from the first state to the last
	Rounds      int    // of speed; 0 for none
	SpeedBytes  uint64 // smaller states are repeated to that size for it
	JSON        string // file for the report, - for standard output, empty for none
	Quiet       bool   // tell nothing meanwhile
}

// maxRounds bounds the patience of whoever asks.
const maxRounds = 1000

// Codec measures the codec and prints what comes out.
func Codec(ctx context.Context, out io.Writer, o Options) error {
	if o.Rounds < 0 || o.Rounds > maxRounds {
		return fmt.Errorf("%d rounds: give a number from 0 (no speeds) to %d", o.Rounds, maxRounds)
	}
	b := &bench{Options: o, progress: newProgress()}
	b.quiet = o.Quiet
	r, err := b.run(ctx)
	b.clear()
	if err != nil {
		return err
	}
	return r.write(out, o.JSON)
}

// bench is one measurement.
type bench struct {
	Options
	progress
	states  states
	packers []packer // nil when peers are left out
	program bool     // the last of them is the zstd program
	report  Report
}

func (b *bench) run(ctx context.Context) (*Report, error) {
	if err := b.find(ctx); err != nil {
		return nil, err
	}
	if b.Peers {
		if b.packers, b.program = packersHere(); !b.program {
			b.note(withoutZstd)
		}
	}
	last, err := b.pairs(ctx)
	if err != nil {
		return nil, err
	}
	b.report.Tensors = len(last.new.Schema().Tensors())
	if err := b.whole(ctx, last.new); err != nil {
		return nil, err
	}
	if err := b.speed(ctx, last); err != nil {
		return nil, err
	}
	b.report.Machine = thisMachine() // now, that its load is told
	return &b.report, nil
}

// find opens or makes the states.
func (b *bench) find(ctx context.Context) (err error) {
	if b.Steps != "" {
		b.report.Source = filepath.Base(b.Steps)
		b.states, err = findSteps(b.Steps, b.First, b.Last)
		return err
	}
	b.report.Source = fmt.Sprintf("made-up policy at learning rate %g, seed %d", b.LR, b.Seed)
	b.say("making up a policy of %s", humanize.Bytes(uint64(b.Size)))
	b.states, err = makeUp(ctx, policy.Spec{Bytes: b.Size, Updates: 1, LR: b.LR, Seed: b.Seed}, func(done, of int64) {
		b.often("making up a policy: %3.0f %%", 100*float64(done)/float64(of))
	})
	return err
}

// pairs measures all pairs and returns the last.
func (b *bench) pairs(ctx context.Context) (p pair, err error) {
	names := b.states.names()
	if p.new, err = b.states.load(ctx, 0); err != nil {
		return p, err
	}
	for i := 1; i < len(names); i++ {
		p.old = p.new
		if p.new, err = b.states.load(ctx, i); err != nil {
			return p, err
		}
		measured, err := b.pair(ctx, p, names[i-1], names[i])
		if err != nil {
			return p, fmt.Errorf("from %s to %s: %w", names[i-1], names[i], err)
		}
		b.report.Pairs = append(b.report.Pairs, measured)
	}
	b.report.Sum = sum(b.report.Pairs)
	return p, nil
}

func (b *bench) pair(ctx context.Context, p pair, from, to string) (m Pair, err error) {
	name := from + " > " + to
	b.say("%s", name)
	m = Pair{From: from, To: to}
	if m.Edge, err = measureEdge(ctx, p); err != nil {
		return m, err
	}
	m.Bound = bound(p)
	if m.Peers, err = b.peers(ctx, p, name); err != nil {
		return m, err
	}
	m.rate()
	return m, nil
}

// peers measures all others.
func (b *bench) peers(ctx context.Context, p pair, name string) (sizes []PeerSize, err error) {
	if b.packers == nil {
		return nil, nil
	}
	add := func(size PeerSize, err error) error {
		if errors.Is(err, errTooLarge) {
			b.note(err.Error())
			return nil
		}
		sizes = append(sizes, size)
		return err
	}
	for _, w := range peers {
		b.often("%s: format %s", name, w.name)
		if err := add(w.measure(ctx, p, b.packers)); err != nil {
			return nil, err
		}
	}
	if b.program {
		b.often("%s: %s", name, patchFromPeer)
		err = add(patchFrom(ctx, p))
	}
	return sizes, err
}

// note is for something that whoever reads the report must know, once.
func (b *bench) note(text string) {
	for _, n := range b.report.Notes {
		if n == text {
			return
		}
	}
	b.report.Notes = append(b.report.Notes, text)
}

// whole measures a full copy of the last state, and the delta to it from the first.
func (b *bench) whole(ctx context.Context, last *delta.Memory) (err error) {
	names := b.states.names()
	end := len(names) - 1
	b.say("%s: full copy", names[end])
	a := Anchor{State: names[end]}
	if a.Edge, err = measureEdge(ctx, pair{new: last}); err != nil {
		return fmt.Errorf("full copy of %s: %w", names[end], err)
	}
	if a.Files, err = b.states.fileBytes(end); err != nil {
		return err
	}
	a.Share = ratio(float64(a.Stream), float64(a.Files))
	b.report.Anchor = a
	if !b.Squash {
		return nil
	}
	b.say("%s > %s: squashed", names[0], names[end])
	s := &Squashed{From: names[0], To: names[end], Singles: b.report.Sum.Stream}
	first, err := b.states.load(ctx, 0)
	if err != nil {
		return err
	}
	if s.Edge, err = measureEdge(ctx, pair{first, last}); err != nil {
		return fmt.Errorf("from %s to %s: %w", s.From, s.To, err)
	}
	s.Share = ratio(float64(s.Stream), float64(s.Singles))
	b.report.Squashed = s
	return nil
}

// speed times the last pair.
func (b *bench) speed(ctx context.Context, last pair) error {
	if b.Rounds == 0 {
		return nil
	}
	many, copies, err := repeated(last, b.SpeedBytes)
	if err != nil {
		return fmt.Errorf("repeat the tensors: %w", err)
	}
	p := b.report.Pairs[len(b.report.Pairs)-1]
	b.report.SpeedOf = &SpeedOf{
		From: p.From, To: p.To, Copies: copies, Bytes: many.new.Schema().Bytes(), Density: p.Density, Rounds: b.Rounds,
	}
	b.report.Speeds, err = measureSpeed(ctx, many, b.Rounds, b.say)
	return err
}
