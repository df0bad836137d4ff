package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sparsecast/sparsecast/node/api"
)

type pullCmd struct {
	Number  *uint64       `short:"n" placeholder:"STEP" help:"Wait for this step or a newer one; the newest known when absent."`
	Epoch   *uint64       `placeholder:"MS" help:"Epoch of that step, as sparsecast publish --json tells it; matters when the trainer has just restarted."`
	Timeout time.Duration `default:"0" help:"Give up after this long, such as 90s; 0 waits for ever."`
	connectFlags
	jsonFlag
}

// Help is shown by sparsecast pull --help.
func (pullCmd) Help() string {
	return `A rollout's node brings new versions up by itself. This waits until one is ready, complete and checked, and
prints the directory that holds it:

  DIR=$(sparsecast pull --number 42 --timeout 5m)`
}

// Run waits and prints the directory.
func (c pullCmd) Run(ctx context.Context) error {
	client, err := c.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	r, err := client.Pull(ctx, api.PullRequest{Number: c.Number, Epoch: c.Epoch, TimeoutSeconds: c.Timeout.Seconds()})
	if err != nil {
		return err
	}
	return c.show(r, func() { fmt.Println(r.Path) })
}
