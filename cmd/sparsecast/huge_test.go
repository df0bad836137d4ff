package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sparsecast/sparsecast/delta"
)

var huge = flag.Bool("huge", false, "take a tensor of more than 2^32 elements through diff and apply, which needs 5 GB of disk")

// TestHuge takes a tensor of more elements than 32 bits can count through diff and apply: what comes out has the root of
// what went in, and neither takes more memory than for a small one. Its file is a hole with some weights in it: at both
// ends, where signed and unsigned positions of 32 bits end, and where blocks meet there.
func TestHuge(t *testing.T) {
	if !*huge {
		t.Skip("run make bench-huge for it")
	}
	const elements = 1<<32 + 12345
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(1, 2))
	weights := make(map[int64][]byte)
	for _, at := range []int64{0, 1<<31 - 1<<19, 1<<32 - 1<<19} { // the last is up to the end
		b := make([]byte, min(1<<20, elements-at))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		weights[at] = b
	}
	old, new := filepath.Join(dir, "old.safetensors"), filepath.Join(dir, "new.safetensors")
	writeHole(t, old, elements, weights)
	changed := 0 // elements that move a step, which is to the next byte
	for at, b := range weights {
		for i := range b {
			if at+int64(i) == elements-1 || r.IntN(50) == 0 {
				b[i]++
				changed++
			}
		}
	}
	writeHole(t, new, elements, weights)
	var d struct {
		Target  delta.Root `json:"target"`
		Changed int        `json:"changed"`
		Coded   int        `json:"coded_bytes"`
	}
	var v struct {
		Root  delta.Root `json:"root"`
		Bytes uint64     `json:"bytes"`
	}
	edge, got := filepath.Join(dir, "edge"), filepath.Join(dir, "got.safetensors")
	lean(t, &d, "diff", "--json", old, new, "-o", edge)
	if d.Changed != changed || d.Coded > 2*changed {
		t.Errorf("%d elements changed in %d bytes, want %d", d.Changed, d.Coded, changed)
	}
	lean(t, nil, "apply", "--json", old, edge, "-o", got)
	lean(t, &v, "verify", "--json", got)
	if v.Root != d.Target || v.Bytes != elements {
		t.Errorf("%d bytes of root %s, want %d of root %s", v.Bytes, v.Root, uint64(elements), d.Target)
	}
	f, err := os.Open(got)
	try(t, err)
	defer f.Close()
	header, err := f.Stat()
	try(t, err)
	for at, want := range weights {
		b := make([]byte, len(want))
		if _, err := f.ReadAt(b, header.Size()-elements+at); err != nil || !bytes.Equal(b, want) {
			t.Errorf("other weights from element %d on (%v)", at, err)
		}
	}
}

// writeHole writes a checkpoint of one tensor that is zero but for some weights.
func writeHole(t *testing.T, path string, elements int64, weights map[int64][]byte) {
	t.Helper()
	header := fmt.Sprintf(`{"w":{"dtype":"F8_E4M3","shape":[%d],"data_offsets":[0,%d]}}`, elements, elements)
	f, err := os.Create(path)
	try(t, err)
	defer f.Close()
	begin := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	_, err = f.WriteAt(append(begin, header...), 0)
	try(t, err)
	data := int64(len(begin) + len(header))
	try(t, f.Truncate(data+elements))
	for at, b := range weights {
		_, err := f.WriteAt(b, data+at)
		try(t, err)
	}
}

// lean runs sparsecast, which must take less than 256 MB, and reads what it prints into result.
func lean(t *testing.T, result any, args ...string) {
	t.Helper()
	cmd := exec.Command("sparsecast", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", args[0], err)
	}
	took := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	t.Logf("%s: %d MB, %v", args[0], took>>20, cmd.ProcessState.UserTime())
	if took > 256<<20 {
		t.Errorf("%s takes %d MB", args[0], took>>20)
	}
	if result != nil {
		try(t, json.Unmarshal(out, result))
	}
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
