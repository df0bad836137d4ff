package mesh

import (
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/record"
	"github.com/multiformats/go-multiaddr"
)

// peerRecord returns a record of key's peer, as signed by signer.
func peerRecord(t *testing.T, key, signer int, seq uint64, at ...multiaddr.Multiaddr) []byte {
	t.Helper()
	rec := &peer.PeerRecord{PeerID: idOf(testKey(key)), Seq: seq, Addrs: at}
	e, err := record.Seal(rec, testKey(signer))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := e.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestRecordsOfMembersReplaceOlderOnes(t *testing.T) {
	members := NewMembers(idOf(testKey(2)), idOf(testKey(1)))
	h := loopbackHost(t, 1, members, new(Stats), "/ip4/127.0.0.1/tcp/0")
	var fresh []peer.ID
	r := &records{h, members, func(p peer.ID) { fresh = append(fresh, p) }}
	home := addrs("/ip4/10.0.0.1/tcp/1", "/ip4/10.0.0.2/tcp/1", "/ip4/10.0.0.3/tcp/1")
	knows := func(key int, want ...multiaddr.Multiaddr) bool {
		got := h.Peerstore().Addrs(idOf(testKey(key)))
		return len(got) == len(want) && (len(got) == 0 || got[0].Equal(want[0]))
	}
	for _, s := range []struct {
		what   string
		record []byte
		want   multiaddr.Multiaddr
		fresh  bool
	}{
		{"a first record", peerRecord(t, 2, 2, 10, home[0]), home[0], true},
		{"the same again", peerRecord(t, 2, 2, 10, home[0]), home[0], false},
		{"a newer one", peerRecord(t, 2, 2, 11, home[1]), home[1], true},
		{"an older one", peerRecord(t, 2, 2, 9, home[2]), home[1], false},
		{"one signed by another", peerRecord(t, 2, 3, 12, home[2]), home[1], false},
		{"noise", []byte("noise"), home[1], false},
	} {
		fresh = nil
		r.learn([][]byte{s.record})
		if !knows(2, s.want) || len(fresh) == 1 != s.fresh {
			t.Errorf("%s: addresses %v, fresh %v", s.what, h.Peerstore().Addrs(idOf(testKey(2))), fresh)
		}
	}
	r.learn([][]byte{peerRecord(t, 3, 3, 10, home[0])})
	if !knows(3) {
		t.Error("a stranger's address is kept")
	}
	many := make([]multiaddr.Multiaddr, maxAddrs+1)
	for i := range many {
		many[i] = home[0]
	}
	if _, _, err := openPeerRecord(peerRecord(t, 2, 2, 99, many...)); err == nil {
		t.Error("a record with too many addresses opens")
	}
	if _, _, err := openPeerRecord(make([]byte, maxPeerRecord+1)); err == nil {
		t.Error("a record too large opens")
	}
}

func TestOwnRecordIsPassedOn(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		members := NewMembers(idOf(testKey(1)))
		h, _ := n.host(t, testKey(1), members, new(Stats))
		r := &records{h, members, func(peer.ID) {}}
		eventually(t, time.Second, "the host has signed its record", func() bool { return len(r.known("asker")) == 1 })
		if _, rec, err := openPeerRecord(r.known("asker")[0]); err != nil || rec.PeerID != h.ID() || len(rec.Addrs) == 0 {
			t.Errorf("got %+v, %v", rec, err)
		}
		if len(r.known(h.ID())) != 0 {
			t.Error("the asker is told of itself")
		}
	})
}
