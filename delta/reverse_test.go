package delta

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// The way back that a decoder writes is what an encoder would write, also when it decodes in place.
func TestReverseIsReencoding(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawCut(rt)
		old, new := randomState(newRand(rt), s, rapid.SampledFrom([]float64{0, 0.01, 0.6}).Draw(rt, "density"))
		e := writeEdge(rt, &memorySpool{}, old, new)
		want := writeEdge(rt, &memorySpool{}, new, old)
		slot, spool := clone(old), &memorySpool{}
		d, err := ApplyEdge(context.Background(), e.Manifest, e.chunk, s, slot, slot, DecodeOptions{Reverse: spool})
		if err != nil {
			rt.Fatal(err)
		}
		back := edge{blocks: want.blocks}
		back.Manifest, err = CutEdge(context.Background(), spool, s, *d.Reverse, nil, back.put())
		if err != nil {
			rt.Fatal(err)
		}
		back.take()
		if got, err := back.Encode(); err != nil || !bytes.Equal(got.Root, encoded(rt, want.Manifest)) {
			rt.Fatalf("the way back is another edge than an encoder writes: %v", err)
		}
		if _, err := ApplyEdge(context.Background(), back.Manifest, back.chunk, s, slot, slot, DecodeOptions{}); err != nil {
			rt.Fatal(err)
		}
		for i := range old.tensors {
			if !bytes.Equal(slot.tensors[i], old.tensors[i]) {
				rt.Fatalf("tensor %d is not as it was", i)
			}
		}
	})
}

func encoded(t fataler, m *Manifest) []byte {
	t.Helper()
	e, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return e.Root
}

// manyFrames returns states of several frames.
func manyFrames(t fataler) (old, new *Memory) {
	t.Helper()
	s, err := NewSchema([]Tensor{tensorOf("w", "I8", 1, 6*frameBytes+5)})
	if err != nil {
		t.Fatal(err)
	}
	old = NewMemory(s)
	new = clone(old)
	for i := 0; i < len(new.tensors[0]); i += 1000 {
		new.tensors[0][i]++
	}
	return old, new
}

// orderly checks that no byte of a frame is written before the way back from it.
type orderly struct {
	*Memory
	io.Writer
	written atomic.Int64 // frames of the way back
	early   atomic.Int64 // bytes that came before theirs
}

func (o *orderly) Write(p []byte) (int, error) {
	if string(p) != streamHead {
		o.written.Add(1)
	}
	return o.Writer.Write(p)
}

func (o *orderly) WriteAt(t int, p []byte, off int64) error {
	if off >= o.written.Load()*frameBytes {
		o.early.Add(int64(len(p)))
	}
	return o.Memory.WriteAt(t, p, off)
}

func TestReverseComesFirst(t *testing.T) {
	old, new := manyFrames(t)
	stream := encodeToBytes(t, old, new)
	var back bytes.Buffer
	slot := &orderly{Memory: clone(old), Writer: &back}
	if _, err := Decode(t.Context(), bytes.NewReader(stream), old.schema, slot.Memory, slot, DecodeOptions{Reverse: slot}); err != nil {
		t.Fatal(err)
	}
	if n := slot.early.Load(); n > 0 {
		t.Errorf("%d bytes were overwritten before the way back was written", n)
	}
	if !bytes.Equal(back.Bytes(), encodeToBytes(t, new, old)) {
		t.Error("the way back is not what an encoder writes")
	}
}

var errFull = errors.New("no space left")

// fullWriter fails after some frames.
type fullWriter struct{ left int }

func (w *fullWriter) Write(p []byte) (int, error) {
	if w.left--; w.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// A way back that cannot be written ends the decoding: nobody waits for a turn that never comes.
func TestReverseThatFails(t *testing.T) {
	old, new := manyFrames(t)
	stream := encodeToBytes(t, old, new)
	for n := range 6 {
		slot := clone(old)
		_, err := Decode(t.Context(), bytes.NewReader(stream), old.schema, slot, slot, DecodeOptions{Reverse: &fullWriter{n}})
		if !errors.Is(err, errFull) {
			t.Fatalf("a full disk after %d writes gave %v", n, err)
		}
		if at := max(0, n-1) * frameBytes; !bytes.Equal(slot.tensors[0][at:], old.tensors[0][at:]) {
			t.Errorf("after %d writes more was overwritten than leads back", n)
		}
	}
	if _, err := Decode(t.Context(), bytes.NewReader(encodeToBytes(t, nil, new)), old.schema, nil, clone(old), DecodeOptions{Reverse: io.Discard}); err == nil {
		t.Error("a way back from an anchor")
	}
}
