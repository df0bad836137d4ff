package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/sparsecast/sparsecast/node/api"
)

type publishCmd struct {
	Paths    []string      `arg:"" optional:"" name:"checkpoint" help:"A safetensors file, or a Hugging Face directory with one file or shards and their index; of several states, each as NAME=PATH."`
	Number   *uint64       `short:"n" placeholder:"STEP" help:"The trainer's step; the last one plus 1 when absent."`
	Full     bool          `help:"Offer a full copy too, for hosts that deltas cannot lead here: new ones without the base, or away for long. Without a checkpoint: of what is published already."`
	NewEpoch bool          `help:"Begin a new epoch, in which steps may be lower: after the trainer went back to an older checkpoint, or to take over from another publisher."`
	Timeout  time.Duration `default:"0" placeholder:"TIME" help:"Give up after this long, such as 10m; 0 waits for ever."`
	connectFlags
	jsonFlag
}

var errTooLong = errors.New("it took longer than --timeout")

// Help is shown by sparsecast publish --help.
func (publishCmd) Help() string {
	return `The trainer's node compares the checkpoint with the version published last, bit by bit, codes what changed, and
announces it. It returns when the version is durable and announced; the checkpoint may be overwritten then.
The checkpoint must be complete and stay as it is meanwhile: a half-written one is refused and nothing is published.
With a --number this may be said again at will: what is published already, with these weights, is not published twice.

  sparsecast publish /ckpt/step_42 --number 42

  sparsecast publish --full      # hosts that nothing leads on for need a full copy of what is published already

What lies beside the weights in a directory (config, tokenizer, chat template) travels with full copies, to hosts that
have no base to take it from.

Several states that belong together (a policy, its draft model, an adapter) are published as one version, and every
rollout switches all of them at once. They are in directories of their own there: current/policy, current/draft.

  sparsecast publish policy=/ckpt/policy draft=/ckpt/draft --number 42

Exit codes: 0 published, 124 not within --timeout, 1 another error, 80 a wrong command line.`
}

// Run publishes and reports.
func (c publishCmd) Run(ctx context.Context) error {
	client, err := c.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	req, err := c.request()
	if err != nil {
		return err
	}
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, errTooLong)
		defer cancel()
	}
	r, err := client.Publish(ctx, req)
	if err != nil && errors.Is(context.Cause(ctx), errTooLong) {
		return api.NewError(http.StatusGatewayTimeout, fmt.Errorf("not published within %s, as far as is known here", c.Timeout),
			"sparsecast status tells what the node does, and under latest what is published; the same checkpoint may be published again with the same --number")
	}
	if err != nil {
		return err
	}
	return c.show(r, func() {
		if r.Again && r.Full > 0 {
			fmt.Printf("a full copy of %d (root %s) is on offer: %s\n", r.Number, r.Root.Short(), humanize.Bytes(r.Full))
			return
		}
		if r.Again {
			fmt.Printf("%d is already published, with these weights (root %s): nothing to do\n", r.Number, r.Root.Short())
			return
		}
		epoch := ""
		if c.NewEpoch {
			epoch = fmt.Sprintf(" of the new epoch %d", r.Epoch)
		}
		fmt.Printf("published %d%s (root %s): %d of %d elements changed, %s, in %.2f s\n",
			r.Number, epoch, r.Root.Short(), r.Changed, r.Elements, sentText(r), r.Seconds)
		if r.Warning != "" {
			fmt.Fprintln(os.Stderr, "warning:", r.Warning)
		}
	})
}

// sentText tells what of a version there is to send: what changed, and a full copy where one was made beside that.
func sentText(r api.PublishResult) string {
	text := "nothing to send"
	if r.Coded > 0 {
		text = humanize.Bytes(r.Coded) + " of code"
	}
	text += " for " + humanize.Bytes(r.Dense) + " of weights"
	if r.Full > 0 && r.Full != r.Coded {
		text += ", and a full copy of " + humanize.Bytes(r.Full)
	}
	return text
}

// request says what to publish: one checkpoint, or several states by their names.
func (c publishCmd) request() (r api.PublishRequest, err error) {
	r = api.PublishRequest{Number: c.Number, Full: c.Full, NewEpoch: c.NewEpoch}
	if len(c.Paths) == 0 {
		if !c.Full || c.Number != nil || c.NewEpoch {
			return r, errors.New("expected a checkpoint to publish, or --full alone for a full copy of what is published already")
		}
		return r, nil
	}
	states, err := namedStates(c.Paths)
	if err != nil {
		return r, err
	}
	for name, path := range states { // the node has another working directory
		if states[name], err = filepath.Abs(path); err != nil {
			return r, err
		}
	}
	if path, unnamed := states[""]; unnamed {
		r.Path = path
	} else {
		r.Paths = states
	}
	return r, nil
}
