package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/dustin/go-humanize"
	"github.com/sparsecast/sparsecast/node/api"
)

type publishCmd struct {
	Path   string  `arg:"" help:"A safetensors file, or a Hugging Face directory with one file or shards and their index."`
	Number *uint64 `short:"n" placeholder:"STEP" help:"The trainer's step; the last one plus 1 when absent."`
	Full   bool    `help:"Offer a full copy too, for hosts that deltas cannot lead here: new ones without the base, or away for long."`
	connectFlags
	jsonFlag
}

// Help is shown by sparsecast publish --help.
func (publishCmd) Help() string {
	return `The trainer's node compares the checkpoint with the version published last, bit by bit, codes what changed, and
announces it. It returns when the version is durable and announced; the checkpoint may be overwritten then.
The checkpoint must be complete and stay as it is meanwhile: a half-written one is refused and nothing is published.

  sparsecast publish /ckpt/step_42 --number 42`
}

// Run publishes and reports.
func (c publishCmd) Run(ctx context.Context) error {
	client, err := c.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return err
	}
	r, err := client.Publish(ctx, api.PublishRequest{Path: path, Number: c.Number, Full: c.Full})
	if err != nil {
		return err
	}
	return c.show(r, func() {
		fmt.Printf("published %d (root %s): %d of %d elements changed, %s of code for %s of weights, in %.2f s\n",
			r.Number, r.Root.Short(), r.Changed, r.Elements, humanize.Bytes(r.Coded), humanize.Bytes(r.Dense), r.Seconds)
	})
}
