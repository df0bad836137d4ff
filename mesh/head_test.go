package mesh

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
	"pgregory.net/rapid"
)

func TestVersionsAreOrderedByEpochFirst(t *testing.T) {
	in := []Version{{0, 0}, {0, 9}, {1, 0}, {1, 1}, {2, 0}}
	for i, v := range in {
		for j, w := range in {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := v.Compare(w); got != want {
				t.Errorf("%s against %s: %d, want %d", v, w, got, want)
			}
		}
	}
}

var (
	drawRun  = rapid.StringMatching(`[a-z0-9 ._-]{1,128}`)
	drawRoot = rapid.Custom(func(t *rapid.T) delta.Root {
		r := delta.Root(rapid.SliceOfN(rapid.Byte(), delta.RootSize, delta.RootSize).Draw(t, "root"))
		r[0] |= 1 // never zero
		return r
	})
	drawID = rapid.Custom(func(t *rapid.T) cid.Cid {
		return delta.Sum(rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "content"))
	})
	drawEdge = rapid.Custom(func(t *rapid.T) Edge {
		return Edge{drawID.Draw(t, "manifest"), drawRoot.Draw(t, "base"), drawRoot.Draw(t, "target"), rapid.Uint64().Draw(t, "coded")}
	})
	drawVersion = rapid.Custom(func(t *rapid.T) Version {
		return Version{uint64(rapid.Int64Min(0).Draw(t, "epoch")), rapid.Uint64().Draw(t, "number")}
	})
	drawHead = rapid.Custom(func(t *rapid.T) Head {
		h := Head{
			Run: drawRun.Draw(t, "run"), Version: drawVersion.Draw(t, "version"), Root: drawRoot.Draw(t, "root"),
			Schema: drawID.Draw(t, "schema"), Created: rapid.Int64().Draw(t, "created"),
		}
		if rapid.Bool().Draw(t, "edge") {
			h.Edge = drawEdge.Draw(t, "edge")
			h.Edge.Target = h.Root
		}
		return h
	})
)

func TestHeadsSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHead.Draw(t, "head")
		b, err := h.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > maxHead {
			t.Fatalf("%d bytes", len(b))
		}
		if got, err := DecodeHead(b); err != nil || got != h {
			t.Fatalf("got %+v, %v; want %+v", got, err, h)
		}
	})
}

// These bytes are part of the format: other versions of this program read and sign them.
func TestHeadEncodingIsPinned(t *testing.T) {
	h := testHead(Version{1_700_000_000_000, 42})
	b, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(b); got != pinnedHead {
		t.Errorf("head\n got %s\nwant %s", got, pinnedHead)
	}
}

func TestInvalidHeadsAreRefused(t *testing.T) {
	for _, c := range []struct {
		what  string
		spoil func(*Head)
	}{
		{"no run", func(h *Head) { h.Run = "" }},
		{"a long run", func(h *Head) { h.Run = strings.Repeat("x", maxName+1) }},
		{"a run with a line break", func(h *Head) { h.Run = "a\nb" }},
		{"a run that is no text", func(h *Head) { h.Run = "\xff" }},
		{"no root", func(h *Head) { h.Root = delta.Root{} }},
		{"no schema", func(h *Head) { h.Schema = cid.Undef }},
		{"an edge to elsewhere", func(h *Head) { h.Edge.Target[3]++ }},
		{"an epoch beyond all clocks", func(h *Head) { h.Version.Epoch = 1 << 63 }},
	} {
		h := testHead(now(1))
		c.spoil(&h)
		if _, err := h.Encode(); err == nil {
			t.Errorf("%s: encoded", c.what)
		}
	}
}

func FuzzDecodeHead(f *testing.F) {
	h := testHead(now(1))
	b, err := h.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	h.Edge = Edge{}
	if b, err = h.Encode(); err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := DecodeHead(b)
		if err != nil {
			return
		}
		if again, err := h.Encode(); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("decoded %x, re-encoded %x (%v)", b, again, err)
		}
	})
}

const pinnedHead = "a8000101676772706f2d3762021b0000018bcfe5680003182a045820002a000000000000000000000000000000000000000000000000000000000001" +
	"055820df0ad6e43880f09c90ebf95f19110178aba6890df0010ebda7485029e2b543b4068458201c1484921d6695a9a5edbd82aefeb6d95831792c1f" +
	"71a589403b643618219dd7582000000000000000000000000000000000000000000000000000000000000000005820002a0000000000000000000000" +
	"000000000000000000000000000000000000011903e8071b0000018bcfe56800"
