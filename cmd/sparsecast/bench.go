package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/sparsecast/sparsecast/cmd/sparsecast/bench"
	"github.com/sparsecast/sparsecast/node/api"
)

type benchCmd struct {
	Codec benchCodecCmd `cmd:"" help:"Measure how small and how fast deltas between checkpoints are."`
}

// Help is shown by sparsecast bench --help.
func (benchCmd) Help() string {
	return `Measures on this machine, and without a network, what sparsecast does to weights.

  sparsecast bench codec --steps runs/grpo-lr1e-6
  sparsecast bench codec --synth 1GB`
}

type benchCodecCmd struct {
	Steps  string    `type:"existingdir" xor:"source" placeholder:"DIR" help:"Measure the checkpoints of a recorded run, step by step."`
	First  int       `default:"0" placeholder:"STEP" help:"Begin with this step of it: the first few of a run differ from all later ones."`
	Last   int       `placeholder:"STEP" help:"End with this step of it."`
	Synth  byteCount `xor:"source" placeholder:"BYTES" help:"Measure a made-up policy of this size, such as 256MiB or 1GB, and one update of it."`
	LR     float64   `name:"lr" default:"1.6e-6" help:"Learning rate of the update; 1.6e-6 changes about 1.7 % of the elements."`
	Seed   uint64    `default:"1" help:"Another seed makes another policy of that shape."`
	Peers  *bool     `negatable:"" help:"Compare with how others write the same changes down. As a rule with --steps, not with --synth."`
	Squash bool      `help:"Also measure the delta from the first step to the last against the sum of the single ones."`
	Rounds int       `default:"9" help:"Rounds of measuring speed; 0 for none."`
	Speed  byteCount `name:"speed-size" default:"128MiB" help:"Repeat the tensors of smaller policies up to this size before timing."`
	JSON   string    `name:"json" placeholder:"FILE" help:"Also write everything to a file as JSON, or to standard output alone with -."`
}

// Help is shown by sparsecast bench codec --help.
func (benchCodecCmd) Help() string {
	return `For every pair of checkpoints that follow each other: how many elements changed; what the code of that takes in bytes,
and a changed element; what it would take at least (bound: the entropy of positions and steps, given tensor and exponent of the
old value); and the manifest, which travels with it. The outboard is fetched for repair only, and the schema once a run.
Then the same pairs in the formats of others, each read back and compared: in their favour without names and headers, and
under the smaller of the zstd program and the one in Go. Then the size of a full copy.

Speed is that of all the work of a trainer (both states read, compared, coded and digested) and of a rollout (chunks checked,
decoded, written, digested, root compared) in memory, for every kernel that this processor has, as a share of how fast as many
threads copy the same bytes; scaling is against one thread, in the fastest rounds, and cores are those that the process had at most: where
others use the machine, they are fewer than threads. SPARSECAST_KERNEL limits it to one kernel. It takes memory for three copies
of the weights, and some more while others are measured.

The checkpoints are files step_000042.safetensors, or directories such as global_step_42 or checkpoint-42.

  sparsecast bench codec --steps runs/grpo-lr1e-6 --first 7 --squash
  sparsecast bench codec --steps runs/grpo-lr1e-6 --rounds 0 --json -
  sparsecast bench codec --synth 1GB --lr 3e-6 --peers`
}

// Run measures and prints.
func (c benchCodecCmd) Run(ctx context.Context) error {
	if c.Steps == "" && c.Synth == 0 {
		return api.NewError(0, errors.New("nothing to measure"), "name a directory with --steps DIR, or a size with --synth 1GB")
	}
	if _, err := os.Stat(filepath.Dir(c.JSON)); err != nil { // now, not after all the work
		return fmt.Errorf("--json %s: its directory: %w: make it first", c.JSON, err)
	}
	o := bench.Options{
		Steps: c.Steps, First: c.First, Last: math.MaxInt, Size: int64(c.Synth), LR: c.LR, Seed: c.Seed,
		Peers: c.Steps != "", Squash: c.Squash, Rounds: c.Rounds, SpeedBytes: uint64(c.Speed), JSON: c.JSON,
	}
	if c.Last > 0 {
		o.Last = c.Last
	}
	if c.Peers != nil {
		o.Peers = *c.Peers
	}
	return bench.Codec(ctx, os.Stdout, o)
}
