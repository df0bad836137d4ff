package main

import (
	"context"
	"fmt"

	"github.com/sparsecast/sparsecast/node/api"
)

type confirmCmd struct {
	Number uint64  `arg:"" help:"The step that the engine has loaded."`
	Epoch  *uint64 `placeholder:"MS" help:"Epoch of that step; that of the version served when absent."`
	connectFlags
	jsonFlag
}

// Help is shown by sparsecast confirm --help.
func (confirmCmd) Help() string {
	return `With confirm: manual in its configuration, a rollout's node leaves the slot that was served before alone until it is
told that the engine has loaded the version served now. Newer versions are fetched meanwhile, and wait. An engine that
opens its files late or loads slowly so never finds them replaced. With confirm: auto this does nothing.

  DIR=$(sparsecast pull --at-least 42)
  load "$DIR" && sparsecast confirm 42

If pull gave a newer version than was asked for, confirm that: sparsecast pull --json tells its number.`
}

// Run confirms.
func (c confirmCmd) Run(ctx context.Context) error {
	client, err := c.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	r, err := client.Confirm(ctx, api.VersionRequest{Number: &c.Number, Epoch: c.Epoch})
	if err != nil {
		return err
	}
	return c.show(r, func() { fmt.Printf("confirmed %d\n", c.Number) })
}
