package main

import (
	"context"
	"fmt"
	"os"

	"github.com/sparsecast/sparsecast/node/api"
)

type pinCmd struct {
	Number *uint64 `arg:"" optional:"" help:"The step to stay at; absent to see where the node is pinned."`
	Epoch  *uint64 `placeholder:"MS" help:"Epoch of that step, as sparsecast status --json tells it; the newest epoch with such a step when absent."`
	connectFlags
	jsonFlag
}

// Help is shown by sparsecast pin --help.
func (pinCmd) Help() string {
	return `The rollout's node brings up just that version, forward or back, and serves it whatever is newer, also after a
restart, until sparsecast unpin. It fetches only what it needs for that. This returns at once; to wait until the
version is ready, use sparsecast pull --version.

A version that is not on offer is waited for: the node goes on serving what it serves, and status tells what there is.

  sparsecast pin 42
  sparsecast unpin`
}

// Run pins, or tells where the node is pinned.
func (c pinCmd) Run(ctx context.Context) error {
	client, err := c.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	var r api.PinResult
	if c.Number != nil {
		r, err = client.Pin(ctx, api.VersionRequest{Number: c.Number, Epoch: c.Epoch})
	} else {
		r, err = client.Pinned(ctx)
	}
	if err != nil {
		return err
	}
	return c.show(r, func() { printPin(r) })
}

type unpinCmd struct {
	connectFlags
	jsonFlag
}

// Help is shown by sparsecast unpin --help.
func (unpinCmd) Help() string {
	return `The rollout's node follows the newest version again, after sparsecast pin or sparsecast pull --version.

  sparsecast unpin --config sparsecast.yaml`
}

// Run unpins.
func (c unpinCmd) Run(ctx context.Context) error {
	client, err := c.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	r, err := client.Unpin(ctx)
	if err != nil {
		return err
	}
	return c.show(r, func() { printPin(r) })
}

func printPin(r api.PinResult) {
	served := "nothing is served now"
	if r.Served != nil {
		served = fmt.Sprintf("%d is served now", r.Served.Number)
	}
	if r.Pin == nil {
		fmt.Printf("not pinned, following the newest version; %s\n", served)
	} else {
		fmt.Printf("pinned to %d until sparsecast unpin; %s\n", r.Pin.Number, served)
	}
	if r.Problem != "" {
		fmt.Fprintln(os.Stderr, "sparsecast: warning:", r.Problem)
	}
}
