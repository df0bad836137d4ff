package mesh

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"testing"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
	"pgregory.net/rapid"
)

func TestCataloguesSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawVersion.Draw(t, "version")
		c := Catalogue{Run: drawRun.Draw(t, "run"), Epoch: v.Epoch, Seq: v.Number, Edges: rapid.SliceOfN(drawEdge, 0, 20).Draw(t, "edges")}
		b, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeCatalogue(b); err != nil || !reflect.DeepEqual(got, c) {
			t.Fatalf("got %+v, %v; want %+v", got, err, c)
		}
	})
}

// These bytes are part of the format: other versions of this program read and sign them.
func TestCatalogueEncodingIsPinned(t *testing.T) {
	c := testCatalogue(1_700_000_000_000, 7, 1)
	b, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(b); got != pinnedCatalogue {
		t.Errorf("catalogue\n got %s\nwant %s", got, pinnedCatalogue)
	}
}

func TestTheLargestCatalogueFitsInAnAnswer(t *testing.T) {
	c := testCatalogue(1<<62, 1<<62, maxEdges)
	for i := range c.Edges {
		c.Edges[i].Coded = 1 << 63
	}
	s, err := sealCatalogue(c, testKey(0))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Raw) > maxCatalogue || maxCatalogue+maxHead+maxRecords*(maxPeerRecord+8) > maxAnswer {
		t.Errorf("a catalogue of %d bytes against bounds of %d and %d", len(s.Raw), maxCatalogue, maxAnswer)
	}
	if _, err := openCatalogue(s.Raw, anyone); err != nil {
		t.Error(err)
	}
}

func TestInvalidCataloguesAreRefused(t *testing.T) {
	for _, c := range []struct {
		what  string
		spoil func(*Catalogue)
	}{
		{"no run", func(c *Catalogue) { c.Run = "" }},
		{"an edge without a manifest", func(c *Catalogue) { c.Edges[0].Manifest = cid.Undef }},
		{"an edge to nowhere", func(c *Catalogue) { c.Edges[0].Target = delta.Root{} }},
		{"too many edges", func(c *Catalogue) { *c = testCatalogue(1, 1, maxEdges+1) }},
		{"an epoch beyond all clocks", func(c *Catalogue) { c.Epoch = 1 << 63 }},
	} {
		bad := testCatalogue(1, 1, 2)
		c.spoil(&bad)
		if _, err := bad.Encode(); err == nil {
			t.Errorf("%s: encoded", c.what)
		}
	}
}

func FuzzDecodeCatalogue(f *testing.F) {
	for _, edges := range []int{0, 2} {
		c := testCatalogue(1, 1, edges)
		b, err := c.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := DecodeCatalogue(b)
		if err != nil {
			return
		}
		if again, err := c.Encode(); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("decoded %x, re-encoded %x (%v)", b, again, err)
		}
	})
}

const pinnedCatalogue = "a5000101676772706f2d3762021b0000018bcfe568000307048184582011882c1b866e59bacfba36dd906c851517703c78c322f6351edfe251125d61" +
	"795820000000000000000000000000000000000000000000000000000000000000000058200000000000000000000000000000000000000000000000" +
	"0000000000000000011903e8"
