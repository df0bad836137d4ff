package mesh

import (
	"bytes"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"pgregory.net/rapid"
)

var bookTime = time.UnixMilli(int64(now(0).Epoch))

func testBook() *book {
	return newBook(testRun, []peer.ID{idOf(testKey(0)), idOf(testKey(1))}, time.Hour)
}

func mustSeal(t interface{ Fatal(...any) }, h Head, signer int) sealed[Head] {
	s, err := sealHead(h, testKey(signer))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustSealCatalogue(t interface{ Fatal(...any) }, c Catalogue, signer int) sealed[Catalogue] {
	s, err := sealCatalogue(c, testKey(signer))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// with returns h with another root.
func with(h Head, root byte) Head {
	h.Root[9] = root
	h.Edge.Target = h.Root
	return h
}

func TestBookRanksHeads(t *testing.T) {
	b := testBook()
	b.head = mustSeal(t, testHead(now(5)), 0)
	hour := uint64(time.Hour.Milliseconds())
	foreign := testHead(now(9))
	foreign.Run = "another"
	recreated := testHead(now(5))
	recreated.Created++
	for _, c := range []struct {
		what string
		raw  []byte
		want verdict
	}{
		{"nothing", nil, absent},
		{"the same bytes", b.head.Raw, duplicate},
		{"the same version and root, signed again", mustSeal(t, recreated, 0).Raw, duplicate},
		{"the same version, another root", mustSeal(t, with(testHead(now(5)), 1), 0).Raw, conflicting},
		{"the next number", mustSeal(t, testHead(now(6)), 0).Raw, accepted},
		{"the next number by another publisher", mustSeal(t, testHead(now(6)), 1).Raw, accepted},
		{"the number before", mustSeal(t, testHead(now(4)), 0).Raw, stale},
		{"a later number of an older epoch", mustSeal(t, testHead(Version{now(0).Epoch - 1, 99}), 0).Raw, stale},
		{"a newer epoch", mustSeal(t, testHead(Version{now(0).Epoch + 1, 0}), 0).Raw, accepted},
		{"an epoch an hour ahead", mustSeal(t, testHead(Version{now(0).Epoch + hour, 0}), 0).Raw, accepted},
		{"an epoch further ahead", mustSeal(t, testHead(Version{now(0).Epoch + hour + 1, 0}), 0).Raw, early},
		{"another run", mustSeal(t, foreign, 0).Raw, forged},
		{"a stranger", mustSeal(t, testHead(now(6)), 2).Raw, forged},
		{"noise", []byte("noise"), malformed},
		{"a catalogue", mustSealCatalogue(t, testCatalogue(now(0).Epoch, 9, 1), 0).Raw, malformed},
	} {
		_, got, err := b.judgeHead(c.raw, bookTime)
		if got != c.want {
			t.Errorf("%s: %s (%v), want %s", c.what, got, err, c.want)
		}
		if refused := c.want > duplicate; refused != (err != nil) {
			t.Errorf("%s: %s explained by %v", c.what, got, err)
		}
	}
}

func TestBookRanksCatalogues(t *testing.T) {
	b := testBook()
	epoch := now(0).Epoch
	b.catalogue = mustSealCatalogue(t, testCatalogue(epoch, 5, 2), 0)
	for _, c := range []struct {
		what string
		raw  []byte
		want verdict
	}{
		{"nothing", nil, absent},
		{"the same bytes", b.catalogue.Raw, duplicate},
		{"the same number, other edges", mustSealCatalogue(t, testCatalogue(epoch, 5, 3), 0).Raw, conflicting},
		{"the next number", mustSealCatalogue(t, testCatalogue(epoch, 6, 0), 0).Raw, accepted},
		{"the number before", mustSealCatalogue(t, testCatalogue(epoch, 4, 2), 0).Raw, stale},
		{"a newer epoch", mustSealCatalogue(t, testCatalogue(epoch+1, 0, 2), 0).Raw, accepted},
		{"a stranger", mustSealCatalogue(t, testCatalogue(epoch, 6, 2), 2).Raw, forged},
		{"noise", []byte("noise"), malformed},
		{"the far future", mustSealCatalogue(t, testCatalogue(2*epoch, 6, 2), 0).Raw, early},
	} {
		if _, got, err := b.judgeCatalogue(c.raw, bookTime); got != c.want {
			t.Errorf("%s: %s (%v), want %s", c.what, got, err, c.want)
		}
	}
}

func TestFrozenEpochStaysFrozen(t *testing.T) {
	b := testBook()
	b.head = mustSeal(t, testHead(now(5)), 0)
	b.freeze(mustSeal(t, with(testHead(now(5)), 1), 0))
	for _, c := range []struct {
		v    Version
		want verdict
	}{
		{now(4), stale},
		{now(5), duplicate},
		{now(6), conflicting},
		{Version{now(0).Epoch + 1, 0}, accepted},
	} {
		if got, err := b.rankHead(testHead(c.v), idOf(testKey(0)), bookTime); got != c.want {
			t.Errorf("%s: %s (%v), want %s", c.v, got, err, c.want)
		}
	}
	if b.freeze(mustSeal(t, with(testHead(now(5)), 2), 0)) {
		t.Error("the first proof was replaced")
	}
	if !b.freeze(mustSeal(t, with(testHead(Version{now(0).Epoch + 1, 0}), 2), 0)) {
		t.Error("a later epoch cannot be frozen")
	}
}

// byRank returns the publishers of a testBook, the lower peer ID first.
func byRank() (low, high int) {
	if idOf(testKey(0)) < idOf(testKey(1)) {
		return 0, 1
	}
	return 1, 0
}

func TestOfOneVersionTheHigherPublisherCounts(t *testing.T) {
	low, high := byRank()
	for _, c := range []struct {
		first, second int
		want          verdict
	}{{low, high, accepted}, {high, low, stale}} {
		b := testBook()
		b.head = mustSeal(t, testHead(now(5)), c.first)
		b.catalogue = mustSealCatalogue(t, testCatalogue(1, 5, 2), c.first)
		for _, root := range []byte{0, 1} { // another root of another signer is no contradiction
			h, got, err := b.judgeHead(mustSeal(t, with(testHead(now(5)), root), c.second).Raw, bookTime)
			if got != c.want || b.rival(h) != idOf(testKey(c.first)) {
				t.Errorf("%d after %d: %s (%v), a rival of %s", c.second, c.first, got, err, b.rival(h))
			}
		}
		if _, got, _ := b.judgeCatalogue(mustSealCatalogue(t, testCatalogue(1, 5, 3), c.second).Raw, bookTime); got != c.want {
			t.Errorf("catalogue of %d after %d: %s", c.second, c.first, got)
		}
	}
	b := testBook()
	b.head = mustSeal(t, testHead(now(5)), low)
	if p := b.rival(mustSeal(t, testHead(Version{now(0).Epoch + 1, 1}), high)); p != "" {
		t.Errorf("a publisher that takes over in an epoch of its own is a rival of %s", p)
	}
}

// As long as nobody contradicts himself, all nodes end up with the same records, whatever the order in which they came.
func TestTheOrderOfArrivalDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var heads []sealed[Head]
		var catalogues []sealed[Catalogue]
		for range rapid.IntRange(1, 12).Draw(t, "records") {
			v := Version{now(0).Epoch + rapid.Uint64Range(0, 2).Draw(t, "epoch"), rapid.Uint64Range(0, 2).Draw(t, "number")}
			signer := rapid.IntRange(0, 1).Draw(t, "signer")
			heads = append(heads, mustSeal(t, with(testHead(v), byte(signer)), signer))
			catalogues = append(catalogues, mustSealCatalogue(t, testCatalogue(v.Epoch, v.Number, signer+1), signer))
		}
		end := func() (head, catalogue []byte) {
			b := testBook()
			for i := range heads {
				if h, v, _ := b.judgeHead(heads[i].Raw, bookTime); v == accepted {
					b.head = h
				}
				if c, v, _ := b.judgeCatalogue(catalogues[i].Raw, bookTime); v == accepted {
					b.catalogue = c
				}
			}
			return b.head.Raw, b.catalogue.Raw
		}
		head, catalogue := end()
		heads = rapid.Permutation(heads).Draw(t, "heads")
		catalogues = rapid.Permutation(catalogues).Draw(t, "catalogues")
		if h, c := end(); !bytes.Equal(h, head) || !bytes.Equal(c, catalogue) {
			t.Fatal("another order, another end")
		}
	})
}

// Whatever arrives in whatever order: the head never goes back, never changes its root, and ends at the newest
// acceptable version unless its epoch was contradicted.
func TestBookOnlyMovesForward(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := testBook()
		newest := Version{}
		for range rapid.IntRange(1, 30).Draw(t, "heads") {
			v := Version{now(0).Epoch + rapid.Uint64Range(0, 2).Draw(t, "epoch"), rapid.Uint64Range(0, 4).Draw(t, "number")}
			h := with(testHead(v), rapid.ByteRange(0, 1).Draw(t, "root"))
			signer := rapid.IntRange(0, 2).Draw(t, "signer")
			before := b.head
			got, verdict, _ := b.judgeHead(mustSeal(t, h, signer).Raw, bookTime)
			frozen := b.evidence.Raw != nil && b.evidence.Value.Version.Epoch == v.Epoch
			switch verdict {
			case accepted:
				if signer == 2 || frozen || before.Raw != nil && order(v, got.Signer, before.Value.Version, before.Signer) <= 0 {
					t.Fatalf("%s by %d accepted after %s, frozen %v", v, signer, before.Value.Version, frozen)
				}
				b.head, newest = got, v
			case conflicting:
				b.freeze(got)
			case stale:
				if order(v, got.Signer, newest, before.Signer) >= 0 {
					t.Fatalf("%s stale after %s", v, newest)
				}
			case duplicate:
				if v != newest || h.Root != before.Value.Root {
					t.Fatalf("%s with root %s is no duplicate", v, h.Root.Short())
				}
			case forged:
				if signer != 2 {
					t.Fatal("a publisher's head is called forged")
				}
			default:
				t.Fatalf("verdict %s", verdict)
			}
		}
	})
}
