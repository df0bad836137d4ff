package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/node"
	"github.com/sparsecast/sparsecast/node/files"
)

type verifyCmd struct {
	Paths   []string `arg:"" name:"checkpoint" help:"A safetensors file, or a directory: a checkpoint, or current in a node's data directory; of several states, each as NAME=PATH."`
	Root    string   `placeholder:"HEX" help:"Fail unless the root is this one, or begins so (12 digits or more)."`
	GroupBy string   `enum:"none,layer" default:"none" help:"How the run groups weights (group_by of its trainer), which its roots depend on: ${enum}."`
	jsonFlag
}

// Help is shown by sparsecast verify --help.
func (verifyCmd) Help() string {
	return `The root is a hash over names, dtypes, shapes and every bit of the weights, however they are spread over files:
two checkpoints with one root hold the same weights.

  sparsecast verify /var/lib/sparsecast/current --root 2f41...

Several states have a root together, that of their version, and each has one alone, of the same weights without a name:

  sparsecast verify /var/lib/sparsecast/current
  sparsecast verify policy=/ckpt/policy draft=/ckpt/draft
  sparsecast verify /var/lib/sparsecast/current/policy`
}

// checkRoot makes sure that a root is the one wanted, which may be given by its first digits, as others print it.
func checkRoot(root delta.Root, want string) error {
	digits := strings.Trim(want, "0123456789abcdefABCDEF") == ""
	if short, long := len(root.Short()), len(root.String()); !digits || len(want) < short || len(want) > long {
		return fmt.Errorf("root %q: want %d to %d hexadecimal digits", want, short, long)
	}
	if !strings.HasPrefix(root.String(), strings.ToLower(want)) {
		return fmt.Errorf("root %s, want %s: other weights, or the run groups them otherwise (--group-by)", root, want)
	}
	return nil
}

// Run prints the root.
func (c verifyCmd) Run(ctx context.Context) error {
	states, err := namedStates(c.Paths)
	if err != nil {
		return err
	}
	if several := statesIn(states[""]); len(several) > 0 {
		states = several
	}
	s, err := node.OpenWeights(files.OS{}, states, node.RunOptions{GroupBy: c.GroupBy})
	if err != nil {
		return err
	}
	defer s.Close()
	root, err := delta.RootOf(ctx, s, nil)
	if err != nil {
		return err
	}
	if err := s.Changed(); err != nil {
		return err
	}
	given := strings.Join(c.Paths, " ")
	if c.Root != "" {
		if err := checkRoot(root, c.Root); err != nil {
			return fmt.Errorf("%s: %w", given, err)
		}
	}
	result := struct {
		Path  string     `json:"path"`
		Root  delta.Root `json:"root"`
		Bytes uint64     `json:"bytes"`
	}{given, root, s.Schema().Bytes()}
	return c.show(result, func() { fmt.Println(root) })
}
