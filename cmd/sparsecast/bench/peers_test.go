package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/delta/needs"
	"pgregory.net/rapid"
)

// TestPeersRoundTrip writes and reads any pair in the ways of all peers.
func TestPeersRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := anyPair(t, rt)
		for _, w := range peers {
			if _, err := w.measure(t.Context(), p, []packer{goZstd{}}); err != nil {
				rt.Error(err)
			}
		}
	})
}

// TestPeersWithProgram does it once with the program.
func TestPeersWithProgram(t *testing.T) {
	_, err := exec.LookPath(zstdProgram)
	needs.Met(t, "the zstd program", err)
	packers, _ := packersHere()
	old := make([]byte, 1<<16)
	for i := range old {
		old[i] = byte(i * i)
	}
	new := bytes.Clone(old)
	for i := 0; i < len(new); i += 300 {
		new[i] ^= 3
	}
	p := pairOf(t, "BF16", len(old)/2, old, new)
	for _, w := range peers {
		both, err := w.measure(t.Context(), p, packers)
		if err != nil {
			t.Fatal(err)
		}
		for _, only := range packers {
			if one, err := w.measure(t.Context(), p, []packer{only}); err != nil || one.Bytes < both.Bytes {
				t.Errorf("%s: %d bytes, by zstd in %s alone %d, %v", w.name, both.Bytes, only.name(), one.Bytes, err)
			}
		}
	}
	size, err := patchFrom(t.Context(), p)
	if err != nil || size.Bytes == 0 || size.Bytes > uint64(len(new)) {
		t.Errorf("patch-from: %d bytes, %v", size.Bytes, err)
	}
	dir := t.TempDir()
	if err := errors.Join(writeWeights(filepath.Join(dir, "old"), p.old), writeWeights(filepath.Join(dir, "new"), p.new)); err != nil {
		t.Fatal(err)
	}
	for _, level := range patchLevels {
		if n, err := patchAt(t.Context(), dir, level, p); err != nil || n < size.Bytes {
			t.Errorf("patch-from: %d bytes, at %s alone %d, %v", size.Bytes, level, n, err)
		}
	}
	if err := sameWeights(filepath.Join(dir, "old"), p.new); err == nil {
		t.Error("patch-from: another state was not seen")
	}
	if _, err := filter(t.Context(), nil, "--no-such-option"); err == nil || !bytes.Contains([]byte(err.Error()), []byte("--no-such-option")) {
		t.Errorf("a failing program: %v", err)
	}
}

// TestPeersByHand pins what each of them writes.
func TestPeersByHand(t *testing.T) {
	old := make([]byte, 2*600)
	new := bytes.Clone(old)
	for i, at := range []int{3, 301, 302, 599} { // of two rows
		binary.LittleEndian.PutUint16(new[2*at:], uint16(0x100*i+0xa0))
	}
	p := pairOf(t, "BF16", 600, old, new)
	for _, c := range []struct {
		name, want string
	}{
		{"index", "04000000" + "030000002d0100002e01000057020000" + "a000a001a002a003"},
		{"gap u8", "04000000" + "03ff2a00ff29" + "a000a001a002a003"},
		// As one dimension, every element is a row: gaps of 3, 298, 1 and 297 rows do not fit a byte.
		{"grail", "04000000" + "01" + "030000002a0100000100000029010000" + "0000000000000000" + "a000a001a002a003"},
	} {
		parts, err := named(c.name).write(p)
		if err != nil || len(parts) != 1 || hex.EncodeToString(parts[0]) != c.want {
			t.Errorf("%s: %x, %v; want %s", c.name, parts, err, c.want)
		}
	}
	parts, err := named("xor").write(p)
	if err != nil || len(parts) != 1 || !bytes.Equal(parts[0], new) { // old is all zeros
		t.Errorf("xor: %x, %v", parts, err)
	}
	if parts, err := named("xor").write(pair{p.old, p.old}); err != nil || len(parts) != 1 || parts[0] != nil {
		t.Errorf("xor of nothing: %x, %v", parts, err)
	}
}

func named(name string) peer {
	for _, w := range peers {
		if w.name == name {
			return w
		}
	}
	return peer{}
}

// TestPeersAtTheirBorders has gaps, rows and columns on both sides of what one, two and three bytes tell.
func TestPeersAtTheirBorders(t *testing.T) {
	const columns = 1<<16 + 2
	for _, at := range [][]int{
		{253}, {254}, {255}, {256}, {0, 255}, {0, 256}, {0, 257}, {509}, {510}, {511}, {0, 511}, // gaps
		{1<<16 - 1}, {1 << 16}, {1, 1 << 16}, {1, 1<<16 + 1}, {columns - 1, columns}, // columns
		{255 * columns}, {256 * columns}, {columns, 256 * columns}, {columns, 257 * columns}, // rows
	} {
		const rows = 258
		old := make([]byte, rows*columns)
		new := bytes.Clone(old)
		for _, i := range at {
			new[i] = 1
		}
		schema, err := delta.NewSchema([]delta.Tensor{{Name: "w", DType: "U8", Shape: []uint64{rows, columns}, Size: rows * columns}})
		if err != nil {
			t.Fatal(err)
		}
		p := pair{delta.NewMemory(schema), delta.NewMemory(schema)}
		copy(p.new.Tensor(0), new)
		for _, name := range []string{"index", "grail", "gap u8"} {
			parts, err := named(name).write(p)
			if err == nil {
				err = named(name).check(p, parts)
			}
			if err != nil {
				t.Errorf("format %s, changes at %d: %v", name, at, err)
			}
		}
	}
}

// TestPeersAreChecked damages what was written: reading it back must fail, or give another state.
func TestPeersAreChecked(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := anyPair(t, rt)
		w := rapid.SampledFrom(peers).Draw(rt, "format")
		parts, err := w.write(p)
		if err != nil {
			rt.Fatal(err)
		}
		i := rapid.IntRange(0, len(parts)-1).Draw(rt, "part")
		if len(parts[i]) == 0 {
			return
		}
		at := rapid.IntRange(0, len(parts[i])-1).Draw(rt, "byte")
		switch rapid.IntRange(0, 2).Draw(rt, "how") {
		case 0:
			parts[i] = parts[i][:at]
		case 1:
			parts[i] = append(parts[i], 0)
		default:
			if w.name == "grail" { // some of its flags and gaps may say the same in another way
				return
			}
			parts[i][at] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
		}
		if err := w.check(p, parts); err == nil {
			rt.Errorf("format %s: damage was not seen", w.name)
		}
	})
}

// losing is a zstd that gives back other bytes.
type losing struct{ goZstd }

func (losing) unpack(context.Context, []byte) ([]byte, error) { return []byte("other"), nil }

// failing is one that cannot.
type failing struct{ goZstd }

func (failing) pack(context.Context, []byte) ([]byte, error) { return nil, errors.New("no") }

func TestPackersAreChecked(t *testing.T) {
	parts := [][]byte{nil, bytes.Repeat([]byte("abc"), 100)}
	for _, p := range []packer{losing{}, failing{}} {
		if _, _, err := smallest(t.Context(), parts, []packer{goZstd{}, p}); err == nil {
			t.Errorf("%T: no error", p)
		}
	}
	if size, name, err := smallest(t.Context(), parts, []packer{goZstd{}}); err != nil || name != "Go" || size == 0 || size > 100 {
		t.Errorf("%d bytes by %s, %v", size, name, err)
	}
}
