package delta

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Digests tell just which blocks differ, fold to the same root everywhere, and survive being written down.
func TestDigestsProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawCut(rt)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		old, _ := randomState(r, s, 0)
		before, err := DigestsOf(context.Background(), old, nil)
		if err != nil {
			rt.Fatal(err)
		}
		var want []int
		for f := range frames(s) {
			for i, tl := range f.tiles {
				if r.IntN(3) == 0 {
					want = append(want, f.block+i)
					spoil(rt, old, tl, r)
				}
			}
		}
		after, err := DigestsOf(context.Background(), old, nil)
		if err != nil || !slices.Equal(before.Diff(after), want) {
			rt.Fatalf("blocks %v differ, want %v (%v)", before.Diff(after), want, err)
		}
		b, err := after.Encode(s)
		if err != nil {
			rt.Fatal(err)
		}
		again, err := DecodeDigests(b, s)
		if err != nil || len(again.Diff(after)) != 0 {
			rt.Fatalf("digests come back otherwise: %v", err)
		}
		one, _ := before.Root(s)
		two, _ := again.Root(s)
		if (one == two) != (len(want) == 0) {
			rt.Fatal("roots do not tell the states apart")
		}
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		if _, err := DecodeDigests(b, s); err == nil {
			rt.Fatal("damaged digests were read")
		}
	})
}

// spoil flips a bit of a tile.
func spoil(t *rapid.T, m *Memory, tl tile, r *rand.Rand) {
	var buf frameBuffer
	p := make([]byte, tl.size)
	if err := buf.loadTile(m, tl, p); err != nil {
		t.Fatal(err)
	}
	p[r.IntN(len(p))] ^= 1 << r.IntN(8)
	if err := storeTile(m, tl, p); err != nil {
		t.Fatal(err)
	}
}

func TestDigestsOfAnotherSchema(t *testing.T) {
	old, _ := smallPair(t)
	d, err := DigestsOf(context.Background(), old, nil)
	if err != nil {
		t.Fatal(err)
	}
	tensors := slices.Clone(old.schema.Tensors())
	tensors[0].Name = "other"
	other, err := NewSchema(tensors)
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Encode(old.schema)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeDigests(b, other); err == nil {
		t.Error("digests of one schema were read as those of another")
	}
	one, _ := d.Root(old.schema)
	if two, _ := d.Root(other); one == two {
		t.Error("one root under two schemas")
	}
	short := &Digests{blocks: d.blocks[1:]}
	if _, err := short.Root(old.schema); err == nil {
		t.Error("a root of too few digests")
	}
	if _, err := short.Encode(old.schema); err == nil {
		t.Error("too few digests were written")
	}
}

func FuzzDigests(f *testing.F) {
	old, _ := smallPair(f)
	d, err := DigestsOf(context.Background(), old, nil)
	if err != nil {
		f.Fatal(err)
	}
	b, err := d.Encode(old.schema)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := DecodeDigests(b, old.schema)
		if err != nil {
			return
		}
		if again, err := d.Encode(old.schema); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("decodes but encodes differently: %v", err)
		}
	})
}
