package mesh

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"slices"
	"testing"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
	"pgregory.net/rapid"
)

func TestCataloguesSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawVersion.Draw(t, "version")
		c := Catalogue{Run: drawRun.Draw(t, "run"), Epoch: v.Epoch, Seq: v.Number, Edges: rapid.SliceOfN(drawEdge, 0, 20).Draw(t, "edges")}
		c.Versions = drawVersions(t, &c)
		b, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeCatalogue(b); err != nil || !reflect.DeepEqual(got, c) {
			t.Fatalf("got %+v, %v; want %+v", got, err, c)
		}
	})
}

// drawVersions returns versions that c may hold: any of its roots, and at the end any root.
func drawVersions(t *rapid.T, c *Catalogue) []VersionRoot {
	roots := []delta.Root{drawRoot.Draw(t, "head's root")}
	for _, e := range c.Edges {
		roots = append(roots, e.Base, e.Target)
	}
	versions := make([]VersionRoot, 0)
	next := Version{uint64(rapid.IntRange(0, 1<<40).Draw(t, "first epoch")), rapid.Uint64().Draw(t, "first number")}
	for range rapid.IntRange(0, 20).Draw(t, "versions") {
		root := rapid.SampledFrom(roots[min(1, len(roots)-1):]).Draw(t, "root")
		if len(c.Edges) > 0 {
			versions = append(versions, VersionRoot{next, root})
		}
		if rapid.Bool().Draw(t, "new epoch") || next.Number == 1<<64-1 {
			next = Version{next.Epoch + 1, rapid.Uint64().Draw(t, "number")}
		} else {
			next.Number++
		}
	}
	return append(versions, VersionRoot{next, roots[0]})
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
	for i := range c.Versions {
		c.Versions[i].Version = Version{1<<63 - 1, 1<<63 + uint64(i)}
	}
	if len(c.Versions) != maxVersions {
		t.Fatal("not the largest")
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
		{"too many versions", func(c *Catalogue) { *c = testCatalogue(1, 1, maxEdges); c.Versions = append(c.Versions, c.Versions...) }},
		{"a version without a root", func(c *Catalogue) { c.Versions[0].Root = delta.Root{} }},
		{"a version twice", func(c *Catalogue) { c.Versions[1] = c.Versions[0] }},
		{"versions that descend", func(c *Catalogue) { slices.Reverse(c.Versions) }},
		{"an old version that no edge touches", func(c *Catalogue) { c.Versions[0].Root[7]++ }},
		{"a version beyond all clocks", func(c *Catalogue) { c.Versions[2].Version.Epoch = 1 << 63 }},
	} {
		bad := testCatalogue(1, 1, 3)
		c.spoil(&bad)
		if _, err := bad.Encode(); err == nil {
			t.Errorf("%s: encoded", c.what)
		}
	}
}

func TestTheNewestVersionMayBeUntouched(t *testing.T) {
	c := testCatalogue(1, 1, 3)
	c.Versions[2].Root[7]++
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c.Edges, c.Versions = nil, c.Versions[2:]
	if err := c.Validate(); err != nil {
		t.Errorf("a base that nothing leads to: %v", err)
	}
}

// Whatever is noted, the catalogue stays valid, its newest version is the one noted last, and no version that an edge
// touches is lost within the bound.
func TestNotedVersionsStayValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := testCatalogue(5, 1, rapid.IntRange(0, 8).Draw(t, "edges"))
		c.Edges = c.Edges[rapid.IntRange(0, len(c.Edges)).Draw(t, "dropped"):]
		v := VersionRoot{drawVersion.Draw(t, "version"), drawRoot.Draw(t, "root")}
		before := c.Versions
		c.Note(v)
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		if c.Versions[len(c.Versions)-1] != v || !c.Knows(v.Root) {
			t.Fatalf("the newest of %v is not %v", c.Versions, v)
		}
		if got, ok := c.Numbered(v.Version.Number); !ok || got != v {
			t.Fatalf("number %d is %v", v.Version.Number, got)
		}
		touched := c.touched()
		for _, old := range before {
			_, ok := touched[old.Root]
			if kept := slices.Contains(c.Versions, old); kept != (ok && old.Version.Compare(v.Version) < 0) {
				t.Fatalf("version %v is kept: %v", old, kept)
			}
		}
	})
}

func TestNotedVersionsAreBounded(t *testing.T) {
	c := testCatalogue(1, 1, 1)
	root := c.Edges[0].Target
	for i := range uint64(2 * maxVersions) {
		c.Note(VersionRoot{Version{2, i}, root})
	}
	if err := c.Validate(); err != nil || len(c.Versions) != maxVersions || c.Versions[maxVersions-1].Version.Number != 2*maxVersions-1 {
		t.Errorf("%d versions, %v", len(c.Versions), err)
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

const pinnedCatalogue = "a6000201676772706f2d3762021b0000018bcfe568000307048184582011882c1b866e59bacfba36dd906c851517703c78c322f6351edfe251125d61" +
	"795820000000000000000000000000000000000000000000000000000000000000000058200000000000000000000000000000000000000000000000" +
	"0000000000000000011903e80581831b0000018bcfe568000058200000000000000000000000000000000000000000000000000000000000000001"
