package delta

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// smallPair returns two states of mixed dtypes that differ in sparse, raw and unchanged tiles.
func smallPair(t testing.TB) (old, new *Memory) {
	tensors := []Tensor{
		{Name: "a", DType: "BF16", Shape: []uint64{4000}, Size: 8000},
		{Name: "b", DType: "F32", Shape: []uint64{10}, Size: 40},
		{Name: "c", DType: "F8_E4M3", Shape: []uint64{300}, Size: 300},
		{Name: "d", DType: "I64", Shape: []uint64{}, Size: 8},
	}
	schema, err := NewSchema(tensors)
	if err != nil {
		t.Fatal(err)
	}
	old = NewMemory(schema)
	r := rand.New(rand.NewPCG(1, 2))
	for _, b := range old.tensors {
		for i := range b {
			b[i] = byte(r.Uint32())
		}
	}
	new = clone(old)
	mutate(r, new.tensors[0], 2, 0.02)
	mutate(r, new.tensors[1], 4, 1)
	mutate(r, new.tensors[2], 1, 0.1)
	return old, new
}

func encodeToBytes(t testing.TB, old, new State) []byte {
	t.Helper()
	var buf bytes.Buffer
	if _, err := Encode(context.Background(), &buf, old, new, EncodeOptions{}); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func decodeBytes(stream []byte, old *Memory) (*Memory, Root, error) {
	got := NewMemory(old.schema)
	d, err := Decode(context.Background(), bytes.NewReader(stream), old.schema, old, got, DecodeOptions{})
	return got, d.Root, err
}

func TestTruncatedStreams(t *testing.T) {
	old, new := smallPair(t)
	stream := encodeToBytes(t, old, new)
	for n := range stream {
		_, _, err := decodeBytes(stream[:n], old)
		if err == nil {
			t.Fatalf("the first %d of %d bytes decoded", n, len(stream))
		}
		if said := err.Error(); n > len(streamMagic) && !strings.Contains(said, `frame 0 (tiles 0 to 3, from byte 0 of tensor "a" on): `) {
			t.Fatalf("the first %d of %d bytes: %s", n, len(stream), said)
		}
	}
	if _, _, err := decodeBytes(append(bytes.Clone(stream), 0), old); err == nil {
		t.Fatal("a stream with a byte behind it decoded")
	}
}

// A flipped bit must never pass for the promised state.
func TestFlippedBits(t *testing.T) {
	old, new := smallPair(t)
	want, err := RootOf(context.Background(), new, nil)
	if err != nil {
		t.Fatal(err)
	}
	stream := encodeToBytes(t, old, new)
	for i := range stream {
		for bit := range 8 {
			bad := bytes.Clone(stream)
			bad[i] ^= 1 << bit
			got, root, err := decodeBytes(bad, old)
			if err != nil || root != want {
				continue
			}
			// A head may have two spellings of one content; then the result is right.
			for j := range got.tensors {
				if !bytes.Equal(got.tensors[j], new.tensors[j]) {
					t.Fatalf("byte %d bit %d: other weights under the same root", i, bit)
				}
			}
		}
	}
}

func TestWrongBase(t *testing.T) {
	old, new := smallPair(t)
	var chunk []byte
	m := roundTrip(t, old, new)
	chunk = encodeToBytes(t, old, new)
	other := clone(old)
	other.tensors[3][0] ^= 1 // an element that the delta does not touch
	got := NewMemory(old.schema)
	_, err := ApplyEdge(context.Background(), m, func(int) ([]byte, error) { return chunk, nil }, old.schema, other, got, DecodeOptions{})
	if !errors.Is(err, ErrWrongTarget) {
		t.Fatalf("a delta on a wrong base gave %v, want ErrWrongTarget", err)
	}
}

func TestTamperedChunkIsNotDecoded(t *testing.T) {
	old, new := smallPair(t)
	m := roundTrip(t, old, new)
	chunk := encodeToBytes(t, old, new)
	chunk[len(chunk)/2] ^= 1
	got := NewMemory(old.schema)
	_, err := ApplyEdge(context.Background(), m, func(int) ([]byte, error) { return chunk, nil }, old.schema, old, got, DecodeOptions{})
	if !errors.Is(err, ErrMismatch) {
		t.Fatalf("a tampered chunk gave %v, want ErrMismatch", err)
	}
}

func TestAnotherSchemaIsRefused(t *testing.T) {
	old, _ := smallPair(t)
	other := newState(t, []Tensor{{Name: "a", DType: "BF16", Shape: []uint64{1}, Size: 2}}, []byte{1, 2})
	if _, err := Encode(context.Background(), &bytes.Buffer{}, old, other, EncodeOptions{}); err == nil {
		t.Fatal("a delta between two schemas was coded")
	}
}

// Applying in place must give the same state: a chain of deltas uses it.
func TestDecodeInPlace(t *testing.T) {
	old, new := smallPair(t)
	stream := encodeToBytes(t, old, new)
	want, _ := RootOf(context.Background(), new, nil)
	d, err := Decode(context.Background(), bytes.NewReader(stream), old.schema, old, old, DecodeOptions{})
	if err != nil || d.Root != want {
		t.Fatalf("root %s, want %s (%v)", d.Root, want, err)
	}
}

func TestSchemaRefusals(t *testing.T) {
	for name, tensors := range map[string][]Tensor{
		"doubled name":       {{Name: "a", DType: "U8", Shape: []uint64{1}, Size: 1}, {Name: "a", DType: "U8", Shape: []uint64{1}, Size: 1}},
		"size against shape": {{Name: "a", DType: "BF16", Shape: []uint64{3}, Size: 4}},
		"negative size":      {{Name: "a", DType: "X", Size: -1}},
		"overflowing shape":  {{Name: "a", DType: "U8", Shape: []uint64{1 << 62, 1 << 62}, Size: 0}},
		"endless name":       {{Name: string(make([]byte, 5000)), DType: "U8", Shape: []uint64{1}, Size: 1}},
		"more than 2^62":     {{Name: "a", DType: "X", Size: 1 << 62}, {Name: "b", DType: "X", Size: 1 << 62}},
	} {
		if _, err := NewSchema(tensors); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	old, new := smallPair(f)
	f.Add(encodeToBytes(f, old, new))
	f.Add(encodeToBytes(f, nil, new))
	f.Add([]byte(streamHead))
	f.Fuzz(func(t *testing.T, stream []byte) {
		_, _, _ = decodeBytes(stream, old)
		got := NewMemory(old.schema)
		_, _ = Decode(context.Background(), bytes.NewReader(stream), old.schema, nil, got, DecodeOptions{})
	})
}

// What decodes encodes to the same bytes with the choices that it came with: a code has one spelling, and so one ID.
func FuzzCode(f *testing.F) {
	old, new := smallPair(f)
	schema := old.schema
	var first frame
	for fr := range frames(schema) {
		first = fr
		break
	}
	var oldBuf, newBuf, gotBuf frameBuffer
	before, err := oldBuf.load(old, first)
	if err != nil {
		f.Fatal(err)
	}
	after, err := newBuf.load(new, first)
	if err != nil {
		f.Fatal(err)
	}
	writer, reader := newCodeWriter(), newCodeReader()
	for _, base := range [][][]byte{before, nil} {
		code, _, err := writer.put(first, heldTiles{base, after}, nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(slices.Clone(code), base == nil)
	}
	f.Fuzz(func(t *testing.T, code []byte, anchor bool) {
		base := before
		if anchor {
			base = nil
		}
		got := gotBuf.lay(first, nil)
		if err := reader.decode(first, slices.Clip(code), base, got); err != nil || len(code) == 0 {
			return
		}
		if again := writer.putLike(reader, first, base, got); !bytes.Equal(again, code) {
			t.Fatalf("decodes but encodes differently:\n%x\n%x", code, again)
		}
	})
}

func FuzzManifest(f *testing.F) {
	old, new := smallPair(f)
	for _, m := range []*Manifest{roundTrip(f, old, new), manyChunks(f, inlineChunks), manyChunks(f, inlineChunks+1)} {
		e, err := m.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(e.Root)
	}
	leaves, err := manyChunks(f, inlineChunks+1).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeManifest(b, leavesOf(leaves))
		if err != nil {
			return
		}
		again, err := m.Encode()
		if err != nil || !bytes.Equal(again.Root, b) {
			t.Fatalf("decodes but encodes differently: %v", err)
		}
	})
}

func FuzzSchema(f *testing.F) {
	old, _ := smallPair(f)
	f.Add(old.schema.Encode())
	for _, cut := range []Cutting{GroupByLayer, randomCutting(rand.New(rand.NewPCG(1, 2)))} {
		s, err := NewSchemaOf([]StateTensors{{"a", []Tensor{tensorOf("layers.1.w", "BF16", 2, 4, 5)}}, {"b", old.schema.Tensors()}}, cut)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(s.Encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeSchema(b)
		if err != nil {
			return
		}
		if !bytes.Equal(s.Encode(), b) {
			t.Fatal("decodes but encodes differently")
		}
		if s.Bytes() < 1<<16 && s.Blocks() < 1<<12 {
			roundTrip(t, nil, NewMemory(s))
		}
	})
}

func FuzzContainer(f *testing.F) {
	old, new := smallPair(f)
	m := roundTrip(f, old, new)
	var file bytes.Buffer
	if err := WriteContainer(&file, m, new.schema, bytes.NewReader(encodeToBytes(f, old, new))); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := OpenContainer(bytes.NewReader(b), int64(len(b)))
		if err != nil || c.Schema.Bytes() > 1<<20 {
			return
		}
		_, _ = ApplyEdge(context.Background(), c.Manifest, c.Chunk, c.Schema, nil, NewMemory(c.Schema), DecodeOptions{})
	})
}
