package delta

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"math/rand/v2"
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
	root, err := Decode(context.Background(), bytes.NewReader(stream), old.schema, old, got, nil)
	return got, root, err
}

func TestTruncatedStreams(t *testing.T) {
	old, new := smallPair(t)
	stream := encodeToBytes(t, old, new)
	for n := range stream {
		if _, _, err := decodeBytes(stream[:n], old); err == nil {
			t.Fatalf("the first %d of %d bytes decoded", n, len(stream))
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
	err := ApplyEdge(context.Background(), m, func(int) ([]byte, error) { return chunk, nil }, old.schema, other, got, nil)
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
	err := ApplyEdge(context.Background(), m, func(int) ([]byte, error) { return chunk, nil }, old.schema, old, got, nil)
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
	root, err := Decode(context.Background(), bytes.NewReader(stream), old.schema, old, old, nil)
	if err != nil || root != want {
		t.Fatalf("root %s, want %s (%v)", root, want, err)
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

// The bytes of records are pinned: other builds must read them for ever.
func TestGoldenRecords(t *testing.T) {
	schema, err := NewSchema([]Tensor{{Name: "w", DType: "BF16", Shape: []uint64{2}, Size: 4}, {Name: "b", DType: "F32", Size: 4}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := hex.EncodeToString(schema.Encode()), "a2000101828461626346333280048461776442463136810204"; got != want {
		t.Errorf("schema\n%s, want\n%s", got, want)
	}
	m := &Manifest{
		Schema: schema.ID(), Target: Root{1}, Elements: 3, Changed: 3, Dense: 8, Coded: 20000, ChunkSize: MinChunk,
	}
	m.Chunks = append(m.Chunks, Sum([]byte("x")), Sum([]byte("y")))
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := Sum(b).String(), goldenManifest; got != want {
		t.Errorf("manifest %s, want %s\n%x", got, want, b)
	}
}

const goldenManifest = "bafkreid7mtm2clf32eflchcekedkgxv4y2n4kbz2vhxhyr3d2yuysepcnm"

func FuzzDecode(f *testing.F) {
	old, new := smallPair(f)
	f.Add(encodeToBytes(f, old, new))
	f.Add(encodeToBytes(f, nil, new))
	f.Add([]byte(streamMagic))
	f.Fuzz(func(t *testing.T, stream []byte) {
		_, _, _ = decodeBytes(stream, old)
		got := NewMemory(old.schema)
		_, _ = Decode(context.Background(), bytes.NewReader(stream), old.schema, nil, got, nil)
	})
}

func FuzzManifest(f *testing.F) {
	old, new := smallPair(f)
	b, _ := roundTrip(f, old, new).Encode()
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeManifest(b)
		if err != nil {
			return
		}
		again, err := m.Encode()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("decodes but encodes differently: %v", err)
		}
	})
}

func FuzzSchema(f *testing.F) {
	old, _ := smallPair(f)
	f.Add(old.schema.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeSchema(b)
		if err != nil {
			return
		}
		again, err := NewSchema(s.Tensors())
		if err != nil || !again.ID().Equals(s.ID()) {
			t.Fatalf("decodes but encodes differently: %v", err)
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
		_ = ApplyEdge(context.Background(), c.Manifest, c.Chunk, c.Schema, nil, NewMemory(c.Schema), nil)
	})
}
