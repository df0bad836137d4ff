package main

import (
	"context"
	"fmt"

	"github.com/sparsecast/sparsecast/delta"
)

type verifyCmd struct {
	Path string `arg:"" help:"A safetensors file, or a directory: a checkpoint, or current in a node's data directory." type:"path"`
	Root string `placeholder:"HEX" help:"Fail unless the root is this one."`
	jsonFlag
}

// Help is shown by sparsecast verify --help.
func (verifyCmd) Help() string {
	return `The root is a hash over names, dtypes, shapes and every bit of the weights, however they are spread over files:
two checkpoints with one root hold the same weights.

  sparsecast verify /var/lib/sparsecast/current --root 2f41...`
}

// Run prints the root.
func (c verifyCmd) Run(ctx context.Context) error {
	s, err := delta.OpenCheckpoint(c.Path)
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
	if c.Root != "" {
		var want delta.Root
		if err := want.UnmarshalText([]byte(c.Root)); err != nil {
			return err
		}
		if root != want {
			return fmt.Errorf("%s: root %s, want %s", c.Path, root, want)
		}
	}
	result := struct {
		Path  string     `json:"path"`
		Root  delta.Root `json:"root"`
		Bytes uint64     `json:"bytes"`
	}{c.Path, root, s.Schema().Bytes()}
	return c.show(result, func() { fmt.Println(root) })
}
