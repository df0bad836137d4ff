package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"path/filepath"

	"github.com/sparsecast/sparsecast/delta"
)

// maxPatchFrom bounds what zstd can look back to.
const maxPatchFrom = 1<<31 - 1

// patchLevels are the levels that are tried; neither is the best for all. Level 19 makes the code of recorded runs a fifth
// smaller, at one megabyte a second.
var patchLevels = []string{"-3", "-9"}

// tables returns the option that gives zstd tables with room for the places of so many bytes, 1 GiB each at most. With those
// of its levels it soon finds next to nothing of a large old file.
func tables(bytes uint64) string {
	log := min(max(20, bits.Len64(bytes)+1), 28)
	return fmt.Sprintf("--zstd=hashLog=%d,chainLog=%d", log, log)
}

// patchFrom returns the least that zstd --patch-from makes of a pair: of two files, each with all tensors in a row. The
// results are applied and compared.
func patchFrom(ctx context.Context, p pair) (size PeerSize, err error) {
	size.Name = patchFromPeer
	if p.new.Schema().Bytes() > maxPatchFrom {
		return size, fmt.Errorf("zstd --patch-from looks back over 2 GiB at most: %w", errTooLarge)
	}
	if p.new.Schema().Bytes() == 0 {
		return size, nil // zstd aborts on empty files
	}
	dir, err := os.MkdirTemp("", "sparsecast-bench-")
	if err != nil {
		return size, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(writeWeights(at("old"), p.old), writeWeights(at("new"), p.new)); err != nil {
		return size, err
	}
	for i, level := range patchLevels {
		n, err := patchAt(ctx, dir, level, p)
		if err != nil {
			return size, fmt.Errorf("zstd --patch-from %s: %w", level, err)
		}
		if i == 0 || n < size.Bytes {
			size.Bytes, size.Zstd = n, cZstd{}.name()+" "+level
		}
	}
	return size, nil
}

// patchAt returns the size of the patch between the files old and new in dir at a level.
func patchAt(ctx context.Context, dir, level string, p pair) (uint64, error) {
	at := func(name string) string { return filepath.Join(dir, name) }
	base := "--patch-from=" + at("old")
	if _, err := filter(ctx, nil, "-q", "-f", "--no-check", level, "--long=31", tables(p.old.Schema().Bytes()), base, at("new"), "-o", at("patch")); err != nil {
		return 0, err
	}
	if _, err := filter(ctx, nil, "-q", "-f", "-d", "--long=31", base, at("patch"), "-o", at("back")); err != nil {
		return 0, err
	}
	if err := sameWeights(at("back"), p.new); err != nil {
		return 0, err
	}
	info, err := os.Stat(at("patch"))
	if err != nil {
		return 0, err
	}
	return uint64(info.Size()), nil
}

func writeWeights(path string, m *delta.Memory) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for i := range m.Schema().Tensors() {
		if _, err := f.Write(m.Tensor(i)); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}

// sameWeights compares a file with what writeWeights would write.
func sameWeights(path string, m *delta.Memory) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	got := delta.NewMemory(m.Schema())
	for i := range m.Schema().Tensors() {
		if _, err := io.ReadFull(f, got.Tensor(i)); err != nil {
			return fmt.Errorf("read back: %w", err)
		}
	}
	if n, _ := f.Read(make([]byte, 1)); n > 0 || !equal(got, m) {
		return errors.New("it gives back another state")
	}
	return nil
}
