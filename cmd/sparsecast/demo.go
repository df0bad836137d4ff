package main

import (
	"context"

	"github.com/sparsecast/sparsecast/cmd/sparsecast/demo"
)

type demoCmd struct {
	Steps    string    `type:"existingdir" placeholder:"DIR" help:"Publish the step_*.safetensors files of a recorded run instead of a policy made up for the purpose."`
	Rollouts int       `default:"4" help:"Number of rollout nodes."`
	Size     byteCount `default:"256MB" help:"Size of the policy that is made up, such as 64MB or 3GB."`
	Updates  int       `default:"5" help:"Number of updates to it."`
	LR       float64   `name:"lr" default:"1e-6" help:"Learning rate of its training; higher changes more elements."`
	JSON     string    `name:"json" type:"path" placeholder:"FILE" help:"Also write the result to a file as JSON."`
	Dir      string    `type:"path" placeholder:"DIR" help:"Work in this directory and keep it; otherwise in a temporary one that is removed."`
}

// Help is shown by sparsecast demo --help.
func (demoCmd) Help() string {
	return `Starts one trainer and a few rollout nodes, each a process of its own with its own key, data directory,
configuration and bootstrap file, joined over TCP and TLS on loopback. The trainer publishes every update; the
rollouts fetch it from the trainer and from each other, and bring it up. After every update the tensors of every
rollout are compared with the trainer's by SHA-256. The exit code is 0 only if all of them are equal.

  sparsecast demo --size 64MB --updates 3
  sparsecast demo --steps runs/grpo-lr1e-6 --json out.json`
}

// Run shows the demo.
func (c demoCmd) Run(ctx context.Context) error {
	return demo.Run(ctx, demo.Options{
		Steps: c.Steps, Rollouts: c.Rollouts, Size: int64(c.Size), Updates: c.Updates, LR: c.LR, JSON: c.JSON, Dir: c.Dir,
	})
}
