package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sparsecast/sparsecast/cmd/sparsecast/policy"
	"github.com/sparsecast/sparsecast/delta/safetensors"
)

// tensor is a tensor with its bytes.
type tensor struct {
	safetensors.Tensor
	data []byte
}

// weights are the content of a checkpoint.
type weights []tensor

// filled returns a tensor of a dtype that the format knows, filled with a pattern of hexadecimal bytes.
func filled(name, dtype string, shape []uint64, pattern string) (tensor, error) {
	p, err := hex.DecodeString(pattern)
	bits, known := safetensors.BitWidth(dtype)
	if err != nil || !known {
		return tensor{}, fmt.Errorf("tensor %s: dtype %s, pattern %s", name, dtype, pattern)
	}
	for _, d := range shape {
		bits *= int(d)
	}
	if bits/8 > 0 && len(p) == 0 {
		return tensor{}, fmt.Errorf("tensor %s: no pattern for %d bytes", name, bits/8)
	}
	data := bytes.Repeat(p, bits/8/max(1, len(p))+1)[:bits/8]
	return raw(name, dtype, shape, data), nil
}

// raw returns a tensor with just these bytes.
func raw(name, dtype string, shape []uint64, data []byte) tensor {
	return tensor{safetensors.Tensor{Name: name, DType: dtype, Shape: shape, Size: int64(len(data))}, data}
}

// save writes w to a file, which appears whole.
func (w weights) save(path string) (err error) {
	list := make([]safetensors.Tensor, len(w))
	for i, t := range w {
		list[i] = t.Tensor
	}
	out, err := safetensors.Create(path, list, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Abort()) }() // nothing to do after a commit
	for i, t := range w {
		if err := out.WriteAt(i, t.data, 0); err != nil {
			return err
		}
	}
	return out.Commit()
}

// policySteps writes the base and the updates of a made-up policy to dir and returns their paths.
func policySteps(dir string, size int64, updates int, lr float64) (paths []string, err error) {
	p, err := policy.New(policy.Spec{Bytes: size, Updates: updates, LR: lr, Seed: 7})
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var drafts []*safetensors.Writer
	var sinks []policy.Sink
	for i := range p.States() {
		path := filepath.Join(dir, fmt.Sprintf("step_%06d.safetensors", i))
		w, err := safetensors.Create(path, p.Tensors(), nil)
		if err != nil {
			return nil, err
		}
		defer w.Abort() // nothing to do after a commit
		paths, drafts, sinks = append(paths, path), append(drafts, w), append(sinks, w)
	}
	if err := p.Write(context.Background(), sinks, nil); err != nil {
		return nil, err
	}
	for _, d := range drafts {
		if err := d.Commit(); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// digestOf is the SHA-256 over names, dtypes, shapes and bytes of all tensors of a checkpoint, by their names. It
// knows nothing of roots: the code under test must not judge itself.
func digestOf(path string) (string, error) {
	c, err := safetensors.Open(path)
	if err != nil {
		return "", err
	}
	defer c.Close()
	h := sha256.New()
	for i, t := range c.Tensors() {
		data := make([]byte, t.Size)
		if err := c.ReadAt(i, data, 0); err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%q %q %v\n%s", t.Name, t.DType, t.Shape, data)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
