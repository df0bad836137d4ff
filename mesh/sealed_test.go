package mesh

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
	"pgregory.net/rapid"
)

func anyone(peer.ID) bool { return true }

func TestSealedRecordsOpen(t *testing.T) {
	key := testKey(1)
	h, err := sealHead(testHead(now(3)), key)
	if err != nil {
		t.Fatal(err)
	}
	got, err := openHead(h.Raw, anyone)
	if err != nil || got.Value != h.Value || got.Signer != idOf(key) {
		t.Errorf("got %+v, %v", got, err)
	}
	c, err := sealCatalogue(testCatalogue(3, 4, 5), key)
	if err != nil {
		t.Fatal(err)
	}
	again, err := openCatalogue(c.Raw, anyone)
	if err != nil || len(again.Value.Edges) != 5 || again.Signer != idOf(key) {
		t.Errorf("got %+v, %v", again, err)
	}
}

// What others have signed and stored must stay readable: these bytes are part of the format.
func TestSealedHeadIsPinned(t *testing.T) {
	h, err := sealHead(testHead(now(3)), testKey(1))
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(h.Raw); got != pinnedSealedHead {
		t.Errorf("sealed head\n got %s\nwant %s", got, pinnedSealedHead)
	}
}

func TestNoBitOfASealedHeadCanChange(t *testing.T) {
	key := testKey(1)
	h, err := sealHead(testHead(now(3)), key)
	if err != nil {
		t.Fatal(err)
	}
	listed := func(id peer.ID) bool { return id == idOf(key) }
	rapid.Check(t, func(t *rapid.T) {
		raw := append([]byte(nil), h.Raw...)
		raw[rapid.IntRange(0, len(raw)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := openHead(raw, listed); !errors.Is(err, errForged) && !errors.Is(err, errUnreadable) {
			t.Fatalf("opened: %v", err)
		}
	})
}

func TestSealsRefuse(t *testing.T) {
	key, stranger := testKey(1), testKey(2)
	listed := func(id peer.ID) bool { return id == idOf(key) }
	head, err := sealHead(testHead(now(3)), stranger)
	if err != nil {
		t.Fatal(err)
	}
	c, err := sealCatalogue(testCatalogue(3, 4, 0), key)
	if err != nil {
		t.Fatal(err)
	}
	garbage, _, err := seal(headDomain, []byte("no head"), key)
	if err != nil {
		t.Fatal(err)
	}
	own, err := sealHead(testHead(now(3)), key)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		raw  []byte
		want error
	}{
		{"a stranger's signature", head.Raw, errForged},
		{"a catalogue in a head's place", c.Raw, errUnreadable},
		{"a signed non-head", garbage, errUnreadable},
		{"too many bytes", make([]byte, maxHead+1), errUnreadable},
		{"trailing bytes", append(own.Raw[:len(own.Raw):len(own.Raw)], 0x28, 0x01), errUnreadable},
		{"nothing", nil, errUnreadable},
	} {
		if _, err := openHead(c.raw, listed); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.what, err, c.want)
		}
	}
}

func FuzzSealedHead(f *testing.F) {
	h, err := sealHead(testHead(now(3)), testKey(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(h.Raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, err := openHead(raw, anyone)
		if err != nil {
			return
		}
		if err := h.Value.Validate(); err != nil || h.Signer == "" {
			t.Fatalf("opened an invalid head: %v", err)
		}
	})
}

const pinnedSealedHead = "0a24080112208c5434ffc994a46d2e44324d426d6ba8ba12505d963f855d875c433d1950853a120f737061727365636173742d686561641ad301a800" +
	"0101676772706f2d3762021b000000dc6acfac0003030458200003000000000000000000000000000000000000000000000000000000000001055820" +
	"df0ad6e43880f09c90ebf95f19110178aba6890df0010ebda7485029e2b543b406845820fb772d6491d69e9be82ef033308cfba1921ecfc3b519d478" +
	"e9c63a57a16cf12458200000000000000000000000000000000000000000000000000000000000000000582000030000000000000000000000000000" +
	"000000000000000000000000000000011903e8071b0000018bcfe568002a40f1500c1a0ce3135f56e5dea7f1a59d119cf52f2a61aa0442ddbedde240" +
	"b77ff56b9e922c0fba1c4f239e682372c08ffa6bf3dcde13217dbb45db98a1bec26b0c"
