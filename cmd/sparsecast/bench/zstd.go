package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"

	"github.com/klauspost/compress/zstd"
)

// zstdProgram is the C implementation, which compresses better than the one in Go.
const zstdProgram = "zstd"

// withoutZstd is said where that is missing.
const withoutZstd = "the zstd program is not installed: peers are quoted with the zstd in Go, which compresses their formats less, " +
	"and patch-from is left out. For theirs at their best: apt install zstd, dnf install zstd, or brew install zstd"

// packer is an implementation of zstd at level 1.
type packer interface {
	name() string
	pack(ctx context.Context, b []byte) ([]byte, error)
	unpack(ctx context.Context, b []byte) ([]byte, error)
}

// packersHere returns the implementations that this machine has; the program is the last, if there is one.
func packersHere() (list []packer, program bool) {
	list = []packer{goZstd{}}
	if _, err := exec.LookPath(zstdProgram); err != nil {
		return list, false
	}
	return append(list, cZstd{}), true
}

// smallest compresses parts, each by itself, in all ways, and returns how small the best one makes them together.
func smallest(ctx context.Context, parts [][]byte, packers []packer) (size uint64, name string, err error) {
	for i, p := range packers {
		n, err := packed(ctx, parts, p)
		if err != nil {
			return 0, "", fmt.Errorf("zstd in %s: %w", p.name(), err)
		}
		if i == 0 || n < size {
			size, name = n, p.name()
		}
	}
	return size, name, nil
}

// packed compresses parts and sees that they come out again. One without bytes is not sent.
func packed(ctx context.Context, parts [][]byte, p packer) (size uint64, err error) {
	for _, part := range parts {
		if len(part) == 0 {
			continue
		}
		b, err := p.pack(ctx, part)
		if err != nil {
			return 0, err
		}
		back, err := p.unpack(ctx, b)
		if err != nil {
			return 0, err
		}
		if !bytes.Equal(back, part) {
			return 0, errors.New("it gives back other bytes")
		}
		size += uint64(len(b))
	}
	return size, nil
}

// goZstd is klauspost's.
type goZstd struct{}

func (goZstd) name() string { return "Go" }

func (goZstd) pack(_ context.Context, b []byte) ([]byte, error) {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(1)), zstd.WithEncoderCRC(false), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	return w.EncodeAll(b, nil), w.Close()
}

func (goZstd) unpack(_ context.Context, b []byte) ([]byte, error) {
	r, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(1<<40))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.DecodeAll(b, nil)
}

// cZstd is the program.
type cZstd struct{}

func (cZstd) name() string { return "C" }

func (cZstd) pack(ctx context.Context, b []byte) ([]byte, error) {
	return filter(ctx, b, "-1", "--no-check", "--stream-size="+strconv.Itoa(len(b)), "-c", "-q")
}

func (cZstd) unpack(ctx context.Context, b []byte) ([]byte, error) {
	return filter(ctx, b, "-d", "-c", "-q")
}

// filter sends b through the program.
func filter(ctx context.Context, b []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, zstdProgram, args...)
	cmd.Stdin = bytes.NewReader(b)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%v: %w: %s", cmd.Args, err, bytes.TrimSpace(complaint.Bytes()))
	}
	return out.Bytes(), nil
}
