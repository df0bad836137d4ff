package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/sparsecast/sparsecast/node/api"
)

type pullCmd struct {
	AtLeast *uint64       `name:"at-least" aliases:"number" short:"n" xor:"which" placeholder:"STEP" help:"Wait for this step or a newer one."`
	Exact   *uint64       `name:"version" xor:"which" placeholder:"STEP" help:"Bring up just this step, forward or back, and stay there until sparsecast unpin."`
	Epoch   *uint64       `placeholder:"MS" help:"Epoch of that step, as sparsecast publish --json tells it; matters when the trainer has just gone back."`
	Timeout time.Duration `default:"0" placeholder:"TIME" help:"Give up after this long, such as 90s; 0 waits for ever."`
	connectFlags
	jsonFlag
}

// answerGrace is how long after the timeout the node may take to say what is missing.
const answerGrace = 5 * time.Second

// lookEvery is how often a pull looks whether its node is up.
const lookEvery = 200 * time.Millisecond

const startHint = "start the node with sparsecast node --config FILE, or see its log: it may still be starting"

// Help is shown by sparsecast pull --help.
func (pullCmd) Help() string {
	return `A rollout's node brings new versions up by itself. This waits until one is ready, complete and checked, and
prints the directory that holds it. For training, at least the step that samples are wanted of:

  DIR=$(sparsecast pull --at-least 42 --timeout 5m)

For evaluation, just that step, also when it is older than what is served. The node is pinned to it, and stays there
whatever is newer, until it is told to follow again:

  DIR=$(sparsecast pull --version 42 --timeout 5m)
  sparsecast unpin

A trainer that goes back opens a new epoch, in which numbers may be lower. Until the node has heard of that, a higher number
of the epoch before is good enough for --at-least; name the epoch, which publish --json prints, to be sure:

  DIR=$(sparsecast pull --at-least 3 --epoch 1796107875807 --timeout 5m)

Without a step: what the node should serve now, which is the newest version known, the pinned one, or one that max_lag
allows. What it waits for is shown on a terminal, once a minute elsewhere, and by sparsecast status.

The directory holds its version until the second version after it is brought up (longer with confirm: manual); files that
are open by then stay as they are. After a reboot load only what pull prints.

With --timeout a node that is not up yet is waited for, too; without, its absence is an error at once. A node that ends
while this waits is waited for until it is up again.

Exit codes: 0 ready, 124 not ready within --timeout (a pin stays all the same), 1 another error, 80 a wrong command line.`
}

// Run waits and prints the directory.
func (c pullCmd) Run(ctx context.Context) error {
	stop := newTeller(c.wanted(), c.status).start(ctx)
	r, err := c.pull(ctx)
	stop()
	if c.Exact != nil && (err == nil || errors.Is(err, context.Canceled) || isTimeout(err) && !api.IsAbsent(errors.Unwrap(err))) {
		fmt.Fprintf(os.Stderr, "pinned to %d: the node stays there until sparsecast unpin\n", *c.Exact)
	}
	switch {
	case ctx.Err() != nil && err != nil:
		return fmt.Errorf("stopped waiting for %s: %w", c.wanted(), context.Cause(ctx))
	case isTimeout(err):
		c.tellProblems(ctx)
	}
	if err != nil {
		return err
	}
	return c.show(r, func() { fmt.Println(r.Path) })
}

// wanted says which version is waited for.
func (c pullCmd) wanted() string {
	if n := cmp.Or(c.AtLeast, c.Exact); n != nil {
		return fmt.Sprint(*n)
	}
	return "the newest version"
}

// status asks the node what it does. It may have come up, or have started anew, since the last time.
func (c pullCmd) status(ctx context.Context) (api.Status, error) {
	client, err := c.dial()
	if err != nil {
		return api.Status{}, err
	}
	defer client.Close()
	return client.Status(ctx)
}

// tellProblems prints what stands in the way of the node, when it says so.
func (c pullCmd) tellProblems(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answerGrace)
	defer cancel()
	s, err := c.status(ctx)
	if err != nil {
		return // that it does not answer is said already
	}
	for _, p := range s.Problems {
		fmt.Fprintln(os.Stderr, "problem:", p)
	}
}

// pull asks the node. One that is not up yet is waited for where there is an end to it, or where it was up when this began:
// else a slip in the address would wait for ever.
func (c pullCmd) pull(ctx context.Context) (api.PullResult, error) {
	end, ended := time.Now().Add(c.Timeout), false
	for {
		r, err := c.ask(ctx, max(time.Until(end), time.Millisecond))
		ended = ended || api.HasEnded(err)
		if !ended && c.Timeout <= 0 || !api.IsAbsent(err) && !api.HasEnded(err) {
			return r, err
		}
		if c.Timeout > 0 && time.Until(end) < lookEvery {
			return r, api.NewError(http.StatusGatewayTimeout, fmt.Errorf("%w, for %s", err, c.Timeout), startHint)
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return r, err
		}
	}
}

// ask asks the node once.
func (c pullCmd) ask(ctx context.Context, timeout time.Duration) (r api.PullResult, err error) {
	client, err := c.dial()
	if err != nil {
		return r, err
	}
	defer client.Close()
	req := api.PullRequest{Number: c.AtLeast, Epoch: c.Epoch}
	if c.Exact != nil {
		req.Number, req.Exact = c.Exact, true
	}
	if c.Timeout > 0 {
		req.TimeoutSeconds = timeout.Seconds()
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout+answerGrace)
		defer cancel()
	}
	return client.Pull(ctx, req)
}
