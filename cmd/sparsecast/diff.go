package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
)

type diffCmd struct {
	Old string `arg:"" help:"The checkpoint before: a file or directory. Use - for none, which writes a full copy."`
	New string `arg:"" help:"The checkpoint after."`
	Out string `short:"o" required:"" type:"path" placeholder:"FILE" help:"The delta file to write."`
	jsonFlag
}

// Help is shown by sparsecast diff --help.
func (diffCmd) Help() string {
	return `Elements are compared as bits. Both checkpoints must hold the same tensors with the same dtypes and shapes;
how they are spread over files does not matter. Memory stays small whatever their size. Of a version with several
states each has a delta of its own: name the checkpoint of one.

  sparsecast diff step_1.safetensors step_2.safetensors -o 1-2.delta
  sparsecast apply step_1.safetensors 1-2.delta -o copy_of_2.safetensors`
}

// Run writes the delta file.
func (c diffCmd) Run(ctx context.Context) error {
	if err := checkOut(c.Out); err != nil {
		return err
	}
	var inputs []string
	var old delta.State
	if c.Old != "-" {
		s, err := openOne(c.Old)
		if err != nil {
			return err
		}
		defer s.Close()
		old = s
		inputs = append(inputs, filesOf(s, c.Old)...)
	}
	target, err := openOne(c.New)
	if err != nil {
		return err
	}
	defer target.Close()
	if err := checkNotInput(c.Out, append(inputs, filesOf(target, c.New)...)...); err != nil {
		return err
	}
	if old != nil && !old.Schema().ID().Equals(target.Schema().ID()) {
		return fmt.Errorf("%s and %s differ in tensor names, dtypes or shapes: write a full copy instead: sparsecast diff - %s -o %s",
			c.Old, c.New, c.New, c.Out)
	}
	m, err := writeDeltaFile(ctx, c.Out, old, target)
	if err != nil {
		return err
	}
	return c.show(edgeFacts(m), func() { printEdge(m) })
}

// writeDeltaFile builds the file beside its name and renames it when it is whole.
func writeDeltaFile(ctx context.Context, path string, old, target delta.State) (m *delta.Manifest, err error) {
	spool, err := tempFile(path, 0o600)
	if err != nil {
		return nil, err
	}
	defer discard(spool)
	m, _, err = delta.WriteEdge(ctx, spool, old, target, delta.EncodeOptions{}, func(cid.Cid, []byte) error { return nil })
	if err != nil {
		return nil, err
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	out, err := tempFile(path, 0o666) // as a checkpoint has it
	if err != nil {
		return nil, err
	}
	defer discard(out)
	if err := delta.WriteContainer(out, m, target.Schema(), spool); err != nil {
		return nil, err
	}
	if err := out.Sync(); err != nil {
		return nil, err
	}
	return m, os.Rename(out.Name(), path)
}
