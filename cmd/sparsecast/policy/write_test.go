package policy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a sink that keeps a state as one slice per tensor.
type memory [][]byte

func (m memory) WriteAt(tensor int, p []byte, off int64) error {
	if n := copy(m[tensor][off:], p); n != len(p) {
		return fmt.Errorf("tensor %d: %d bytes at %d do not fit", tensor, len(p), off)
	}
	return nil
}

func newMemory(p *Policy) memory {
	var m memory
	for _, t := range p.Tensors() {
		m = append(m, make([]byte, t.Size))
	}
	return m
}

// states writes the policy of s to memory, each state joined to one slice.
func states(t testing.TB, s Spec) [][]byte {
	t.Helper()
	p, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	memories := make([]memory, p.States())
	sinks := make([]Sink, p.States())
	for i := range sinks {
		memories[i] = newMemory(p)
		sinks[i] = memories[i]
	}
	if err := p.Write(t.Context(), sinks, nil); err != nil {
		t.Fatal(err)
	}
	joined := make([][]byte, len(memories))
	for i, m := range memories {
		joined[i] = bytes.Join(m, nil)
	}
	return joined
}

// TestBytesAreTheSameEverywhere pins the bytes: another machine, compiler or number of cores must give the same.
// A change of the model changes them too; then the digest is replaced, and benchmarks start a new series.
func TestBytesAreTheSameEverywhere(t *testing.T) {
	const want = "94b40e3261751de1ae994ee1392d7c1244556f577b97af04ae1f868aa20c37ff"
	s := Spec{Bytes: MinBytes, Updates: 3, LR: 2e-6, Seed: 42}
	for _, cores := range []int{1, 7} {
		old := runtime.GOMAXPROCS(cores)
		sum := sha256.Sum256(bytes.Join(states(t, s), nil))
		runtime.GOMAXPROCS(old)
		if got := hex.EncodeToString(sum[:]); got != want {
			t.Errorf("%d cores: digest %s, want %s", cores, got, want)
		}
	}
}

func TestSpecDecidesTheBytes(t *testing.T) {
	s := Spec{Bytes: MinBytes, Updates: 2, LR: 1e-6}
	short := states(t, s)
	s.Updates = 3
	long := states(t, s)
	for i := range short {
		if !bytes.Equal(short[i], long[i]) {
			t.Errorf("state %d depends on the number of updates", i)
		}
	}
	s.LR = 2e-6
	faster := states(t, s)
	if !bytes.Equal(faster[0], long[0]) || bytes.Equal(faster[1], long[1]) {
		t.Error("the learning rate must leave the base alone and change the updates")
	}
	s.Seed++
	if bytes.Equal(states(t, s)[0], long[0]) {
		t.Error("two seeds give one base")
	}
}

type failing struct{ err error }

func (f failing) WriteAt(int, []byte, int64) error { return f.err }

type discard struct{}

func (discard) WriteAt(int, []byte, int64) error { return nil }

func TestWriteStopsAtAnError(t *testing.T) {
	p, err := New(Spec{Bytes: MinBytes, Updates: 1})
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
	err = p.Write(t.Context(), []Sink{discard{}, failing{full}}, nil)
	if !errors.Is(err, full) || !strings.Contains(err.Error(), "after update 1") {
		t.Errorf("error %v does not name the cause and the update", err)
	}
	if err := p.Write(t.Context(), []Sink{discard{}}, nil); err == nil || !strings.Contains(err.Error(), "1 sinks for 2 states") {
		t.Errorf("one sink for two states: error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Write(ctx, []Sink{discard{}, discard{}}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}

func TestProgressGrowsToTheEnd(t *testing.T) {
	p, err := New(Spec{Bytes: MinBytes, Updates: 1})
	if err != nil {
		t.Fatal(err)
	}
	var last int64
	err = p.Write(t.Context(), []Sink{discard{}, discard{}}, func(done int64) {
		if done <= last {
			t.Errorf("progress went from %d to %d", last, done)
		}
		last = done
	})
	if err != nil || last != 2*p.Bytes() {
		t.Errorf("error %v; progress ended at %d of %d", err, last, 2*p.Bytes())
	}
}

// counting sums what it is given and keeps nothing.
type counting struct{ n *atomic.Int64 }

func (c counting) WriteAt(_ int, p []byte, _ int64) error {
	c.n.Add(int64(len(p)))
	return nil
}

func TestMemoryDoesNotGrow(t *testing.T) {
	if most := maxWorkers * unsafe.Sizeof(block{}); most > 60<<20 {
		t.Errorf("all workers together hold %d bytes, more than 60 MiB", most)
	}
	small, large := allocated(t, 1<<20, 1), allocated(t, 8<<20, 3)
	if large > small+256<<10 {
		t.Errorf("8 times the size and twice the states take %d bytes instead of %d", large, small)
	}
}

// allocated returns the bytes that Write took from the heap, all in all.
func allocated(t *testing.T, size int64, updates int) uint64 {
	t.Helper()
	p, err := New(Spec{Bytes: size, Updates: updates})
	if err != nil {
		t.Fatal(err)
	}
	var n atomic.Int64
	sinks := make([]Sink, p.States())
	for i := range sinks {
		sinks[i] = counting{&n}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = p.Write(t.Context(), sinks, nil)
	runtime.ReadMemStats(&after)
	if err != nil || n.Load() != p.Bytes()*int64(p.States()) {
		t.Fatalf("error %v; %d bytes written, want %d", err, n.Load(), p.Bytes()*int64(p.States()))
	}
	return after.TotalAlloc - before.TotalAlloc
}

// BenchmarkWrite reports the time for one element of one state on all cores, and on one core.
func BenchmarkWrite(b *testing.B) {
	p, err := New(Spec{Bytes: 32 << 20, Updates: 7, LR: 1e-6})
	if err != nil {
		b.Fatal(err)
	}
	sinks := make([]Sink, p.States())
	for i := range sinks {
		sinks[i] = discard{}
	}
	b.SetBytes(p.Bytes() * int64(p.States()))
	for b.Loop() {
		if err := p.Write(b.Context(), sinks, nil); err != nil {
			b.Fatal(err)
		}
	}
	elements := float64(p.Bytes()/2) * float64(p.States()) * float64(b.N)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/elements, "ns/element")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/elements*float64(runtime.GOMAXPROCS(0)), "core-ns/element")
}
