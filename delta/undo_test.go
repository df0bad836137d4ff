package delta

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

var errCut = errors.New("cut short")

// cutSink dies in the middle of a write, at some byte.
type cutSink struct {
	*Memory
	mu   sync.Mutex
	left int
}

func (c *cutSink) WriteAt(t int, p []byte, off int64) error {
	c.mu.Lock()
	n := min(len(p), c.left)
	c.left -= n
	c.mu.Unlock()
	if err := c.Memory.WriteAt(t, p[:n], off); err != nil || n == len(p) {
		return err
	}
	return errCut
}

// kept remembers what was given to it until it was written.
type kept struct {
	mu   sync.Mutex
	open map[int][]byte
}

func (k *kept) keep(block int, tiles [][]byte) (func(), error) {
	data := bytes.Join(tiles, nil)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open[block] = data
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.open, block)
	}, nil
}

func (k *kept) replay(t fataler, s *Schema, sink Sink) {
	t.Helper()
	for block, data := range k.open {
		if err := PutBlocks(s, block, data, sink); err != nil {
			t.Fatal(err)
		}
	}
	clear(k.open)
}

// A change in place that ends at any byte is undone by what was written of the way back, without the base, and an undo
// that ends at any byte, too.
func TestUndo(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawCut(rt)
		old, new := randomState(newRand(rt), s, rapid.SampledFrom([]float64{0, 0.01, 0.6}).Draw(rt, "density"))
		e := writeEdge(rt, &memorySpool{}, old, new)
		was := digestsOf(rt, old)
		var back bytes.Buffer
		k := &kept{open: make(map[int][]byte)}
		cut := rapid.IntRange(0, int(s.Bytes())).Draw(rt, "cut")
		slot := &cutSink{Memory: clone(old), left: cut}
		_, err := ApplyEdge(context.Background(), e.Manifest, e.chunk, s, slot.Memory, slot, DecodeOptions{Reverse: &back, Keep: k.keep})
		if err != nil && !errors.Is(err, errCut) {
			rt.Fatal(err)
		}
		for n := range 3 { // the last of them is not cut short
			k.replay(rt, s, slot.Memory)
			sink := &cutSink{Memory: slot.Memory, left: rapid.IntRange(0, int(s.Bytes())).Draw(rt, "again")}
			if n == 2 {
				sink.left = int(s.Bytes())
			}
			left, err := Undo(context.Background(), bytes.NewReader(back.Bytes()), slot.Memory, digestsOf(rt, slot.Memory), was, sink, k.keep)
			if err != nil && !errors.Is(err, errCut) || len(left) > 0 {
				rt.Fatalf("%v left, %v", left, err)
			}
		}
		for i := range old.tensors {
			if !bytes.Equal(slot.tensors[i], old.tensors[i]) {
				rt.Fatalf("tensor %d is not as it was", i)
			}
		}
	})
}

func digestsOf(t fataler, s State) *Digests {
	t.Helper()
	d, err := DigestsOf(context.Background(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A way back that is cut off or damaged undoes what it can and writes nothing wrong.
func TestUndoDamaged(t *testing.T) {
	old, new := manyFrames(t)
	var back bytes.Buffer
	stream := encodeToBytes(t, old, new)
	if _, err := Decode(t.Context(), bytes.NewReader(stream), old.schema, clone(old), NewMemory(old.schema), DecodeOptions{Reverse: &back}); err != nil {
		t.Fatal(err)
	}
	was, before := digestsOf(t, old), digestsOf(t, new)
	whole := back.Bytes()
	for _, damage := range []func(b []byte) []byte{
		func(b []byte) []byte { return b[:len(b)/2] },
		func(b []byte) []byte { return nil },
		func(b []byte) []byte { clear(b[len(b)/2:]); return b },
		func(b []byte) []byte { b[len(b)/2] ^= 0x40; return b },
	} {
		slot := clone(new)
		left, err := Undo(t.Context(), bytes.NewReader(damage(bytes.Clone(whole))), slot, before, was, slot, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			t.Error("nothing was left")
		}
		if now := digestsOf(t, slot); len(was.Diff(now)) != len(left) {
			t.Errorf("%d blocks are not as they were, %d were left", len(was.Diff(now)), len(left))
		}
	}
}

func TestPutBlocksRefuses(t *testing.T) {
	old, _ := manyFrames(t)
	for _, c := range []struct{ block, size int }{{-1, 1}, {0, BlockWords - 1}, {0, frameBytes + BlockWords}, {1 << 40, BlockWords}, {24, 6}} {
		slot := clone(old)
		if err := PutBlocks(old.schema, c.block, bytes.Repeat([]byte{7}, c.size), slot); err == nil || !bytes.Equal(slot.tensors[0], old.tensors[0]) {
			t.Errorf("%d bytes from block %d on: %v", c.size, c.block, err)
		}
	}
}
