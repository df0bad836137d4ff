package delta

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// endless is a state that takes no memory: words of floats that follow from their place. Of so many one has moved a step.
type endless struct {
	schema *Schema
	every  uint64 // 0 for none
}

func (e endless) Schema() *Schema { return e.schema }

func (e endless) ReadAt(_ int, p []byte, off int64) error {
	for i := 0; i < len(p); i += 2 {
		n := (uint64(off) + uint64(i)) * 0x9e3779b97f4a7c15
		w := uint16(n>>48)&0x807f | (0x78+uint16(n>>40)%8)<<7
		if e.every > 0 && n>>8%e.every == 0 {
			w++
		}
		binary.LittleEndian.PutUint16(p[i:], w)
	}
	return nil
}

// nowhere takes what is written.
type nowhere struct{}

func (nowhere) WriteAt(int, []byte, int64) error { return nil }

// Whatever the size of the model and however many the cores, coding takes less than 256 MB beyond the states.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("reads some gigabytes")
	}
	const limit, size = 256 << 20, 768 << 20
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(64))
	schema, err := NewSchema([]Tensor{tensorOf("w", "BF16", 2, size/2)})
	try(t, err)
	for name, every := range map[string]uint64{"an anchor": 0, "few changes": 60, "all words changed": 1} {
		t.Run(name, func(t *testing.T) {
			var old State
			if every > 0 {
				old = endless{schema, 0}
			}
			new := endless{schema, every}
			spool, err := os.Create(t.TempDir() + "/spool")
			try(t, err)
			defer spool.Close()
			var sum Summary
			peak := peakOf(t, func(ctx context.Context) (err error) {
				sum, err = Encode(ctx, spool, old, new, EncodeOptions{})
				return err
			})
			t.Logf("encoding takes %d MB", peak>>20)
			if peak > limit {
				t.Errorf("encoding takes %d MB", peak>>20)
			}
			_, err = spool.Seek(0, io.SeekStart)
			try(t, err)
			peak = peakOf(t, func(ctx context.Context) error {
				d, err := Decode(ctx, spool, schema, old, nowhere{}, DecodeOptions{})
				if err == nil && d.Root != sum.Target {
					err = fmt.Errorf("root %s, want %s", d.Root.Short(), sum.Target.Short())
				}
				return err
			})
			t.Logf("decoding takes %d MB", peak>>20)
			if peak > limit {
				t.Errorf("decoding takes %d MB", peak>>20)
			}
		})
	}
}

// peakOf returns the most memory that the process holds while f runs, garbage included, beyond what it held before.
func peakOf(t *testing.T, f func(ctx context.Context) error) (peak uint64) {
	t.Helper()
	held := func() uint64 {
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64() + s[1].Value.Uint64()
	}
	runtime.GC()
	before := held()
	done := make(chan error)
	go func() { done <- f(t.Context()) }()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-done:
			try(t, err)
			return peak
		case <-look.C:
			now := held()
			peak = max(peak, now-min(before, now))
		}
	}
}
