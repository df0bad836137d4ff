package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/sparsecast/sparsecast/node/api"
)

type checkCmd struct {
	connectFlags
	jsonFlag
}

// Help is shown by sparsecast check --help.
func (checkCmd) Help() string {
	return `Has the node of this host read all its copies of the weights, the base checkpoint among them, and compare them block by
block with what they should hold. A block that is damaged is rebuilt from another copy on the host and the few chunks
that it takes, from the store or from peers; where that is not possible the version is brought up anew. The base
checkpoint is never written: what is wrong with it is told, and it is not used any more. Serving goes on meanwhile,
except of a copy that is damaged: current leads nowhere until it is whole again.

The node does the same by itself in the background, slowly: see scrub in its configuration.

  sparsecast check --config sparsecast.yaml
  sparsecast check --json | jq '.slots[] | select(.damaged)'

The exit code is 1 when something was damaged and is not repaired.`
}

// Run checks.
func (c checkCmd) Run(ctx context.Context) error {
	client, err := c.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	r, err := client.Check(ctx)
	if err != nil {
		return err
	}
	if err := c.show(r, func() { printCheck(r) }); err != nil {
		return err
	}
	for _, s := range r.Slots {
		if s.Damaged && !s.Repaired {
			return api.NewError(0, errors.New("not all that is damaged could be repaired"), "sparsecast status tells what is served now, and what stands in the way")
		}
	}
	return nil
}

func printCheck(r api.CheckResult) {
	for _, s := range r.Slots {
		state := "whole"
		switch {
		case s.Damaged && s.Repaired:
			state = fmt.Sprintf("damaged, repaired (blocks: %d)", s.Blocks)
		case s.Damaged && s.Blocks > 0:
			state = fmt.Sprintf("damaged (blocks: %d)", s.Blocks)
		case s.Damaged:
			state = "damaged"
		}
		fmt.Printf("%-5s %s  %s  %s\n", s.Slot, s.Root.Short(), state, s.Path)
	}
}
