package main

import (
	"context"
	"fmt"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/node/files"
)

type applyCmd struct {
	Base  string `arg:"" help:"The checkpoint that the delta starts from; - for a full copy."`
	Delta string `arg:"" help:"The delta file." type:"existingfile"`
	Out   string `short:"o" required:"" type:"path" placeholder:"FILE" help:"The safetensors file to write."`
	jsonFlag
}

// Help is shown by sparsecast apply --help.
func (applyCmd) Help() string {
	return `The base is checked against the delta before anything is written, the result before it gets its name: on any
error nothing is left behind. The base is never changed.

  sparsecast apply step_1.safetensors 1-2.delta -o step_2.safetensors
  sparsecast apply - full.delta -o step_2.safetensors`
}

// Run writes the new checkpoint.
func (c applyCmd) Run(ctx context.Context) error {
	if err := checkOut(c.Out); err != nil {
		return err
	}
	if err := c.keepInputs(c.Delta, c.Base); err != nil {
		return err
	}
	in, container, err := openDeltaFile(c.Delta)
	if err != nil {
		return err
	}
	defer in.Close()
	m := container.Manifest
	var base delta.State
	if !m.Base.IsZero() {
		b, err := c.openBase(ctx, m)
		if err != nil {
			return err
		}
		defer b.Close()
		base = b
	}
	draft, err := delta.CreateDraft(c.Out, container.Schema)
	if err != nil {
		return err
	}
	defer draft.Abort() // nothing to do after a commit
	if _, err := delta.ApplyEdge(ctx, m, container.Chunk, container.Schema, base, draft, delta.DecodeOptions{}); err != nil {
		return err
	}
	if err := draft.Commit(); err != nil {
		return err
	}
	return c.show(edgeFacts(m), func() { fmt.Printf("%s: root %s\n", c.Out, m.Target) })
}

// openBase opens the checkpoint that m starts from and makes sure that it is that one.
func (c applyCmd) openBase(ctx context.Context, m *delta.Manifest) (*delta.Checkpoint, error) {
	if c.Base == "-" {
		return nil, fmt.Errorf("this delta starts from a checkpoint with root %s: name it in place of -", m.Base)
	}
	b, err := openOne(c.Base)
	if err != nil {
		return nil, err
	}
	if err = c.checkBase(ctx, b, m); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func (c applyCmd) checkBase(ctx context.Context, b *delta.Checkpoint, m *delta.Manifest) error {
	if err := c.keepInputs(filesOf(b, c.Base)...); err != nil {
		return err
	}
	root, err := delta.RootOf(ctx, b, nil)
	if err == nil && root != m.Base {
		err = fmt.Errorf("%s is not the base of this delta: its root is %s, the delta starts from %s", c.Base, root, m.Base)
	}
	return err
}

// keepInputs makes sure that neither the output nor the draft beside it takes the place of an input.
func (c applyCmd) keepInputs(inputs ...string) error {
	if err := checkNotInput(c.Out, inputs...); err != nil {
		return err
	}
	return checkNotInput(c.Out+".partial", inputs...)
}

func openDeltaFile(path string) (files.File, *delta.Container, error) {
	f, info, err := files.OpenRegular(files.OS{}, path)
	if err != nil {
		return nil, nil, err
	}
	c, err := delta.OpenContainer(f, info.Size())
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, c, nil
}
