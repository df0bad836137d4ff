package mesh

import (
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/record"
)

const (
	// recordTTL is how long an address is believed on hearsay. Polling renews it while the peer lives.
	recordTTL = time.Hour
	// maxAddrs bounds the addresses of one peer.
	maxAddrs = 32
)

// records passes signed peer records from member to member, so that nodes which know only the bootstrap find each
// other. The records are libp2p's own, signed by the peer they are about.
type records struct {
	host    host.Host
	members *Members
	fresh   func(peer.ID) // told when a peer has new addresses
}

// known returns this host's record and those of connected members, except asker's own.
func (r *records) known(asker peer.ID) [][]byte {
	book, ok := peerstore.GetCertifiedAddrBook(r.host.Peerstore())
	if !ok {
		return nil
	}
	var out [][]byte
	for _, p := range append([]peer.ID{r.host.ID()}, r.host.Network().Peers()...) {
		if len(out) == maxRecords {
			break
		}
		if p == asker || p != r.host.ID() && !r.members.Allowed(p) {
			continue
		}
		if e := book.GetPeerRecord(p); e != nil {
			if raw, err := e.Marshal(); err == nil && len(raw) <= maxPeerRecord {
				out = append(out, raw)
			}
		}
	}
	return out
}

// learn takes in records of members. Bad ones are passed over: they harm only themselves.
func (r *records) learn(raws [][]byte) {
	for _, raw := range raws {
		if id, err := signerOf(raw); err != nil || !r.wanted(id) {
			continue // before its signature is computed: most records are of peers that are connected
		}
		if e, rec, err := openPeerRecord(raw); err == nil && r.replace(e, rec, recordTTL) {
			r.fresh(rec.PeerID)
		}
	}
}

// wanted tells whether hearsay about a peer is of use. Of a connected one, identify knows the addresses first hand.
func (r *records) wanted(id peer.ID) bool {
	return id != r.host.ID() && r.members.Allowed(id) && r.host.Network().Connectedness(id) != network.Connected
}

// signerOf returns whom a record claims to be signed by.
func signerOf(raw []byte) (peer.ID, error) {
	if len(raw) > maxPeerRecord {
		return "", fmt.Errorf("peer record: %d bytes, at most %d", len(raw), maxPeerRecord)
	}
	e, err := record.UnmarshalEnvelope(raw)
	if err != nil {
		return "", fmt.Errorf("peer record: %w", err)
	}
	return peer.IDFromPublicKey(e.PublicKey)
}

// met keeps the record that a peer brought itself, which identify has checked but does not store.
func (r *records) met(e *record.Envelope) {
	if e == nil {
		return
	}
	var rec peer.PeerRecord
	if err := e.TypedRecord(&rec); err != nil || len(rec.Addrs) > maxAddrs {
		return
	}
	ttl := peerstore.RecentlyConnectedAddrTTL // it may have left already
	if r.host.Network().Connectedness(rec.PeerID) == network.Connected {
		ttl = peerstore.ConnectedAddrTTL
	}
	r.replace(e, &rec, ttl)
}

// replace puts a record in the place of an older one and tells whether it is newer than what was known. The older
// one's addresses are dropped, since dead ones delay dials.
func (r *records) replace(e *record.Envelope, rec *peer.PeerRecord, ttl time.Duration) (newer bool) {
	book, ok := peerstore.GetCertifiedAddrBook(r.host.Peerstore())
	if !ok {
		return false
	}
	known, had := r.seq(book, rec.PeerID)
	newer = !had || known < rec.Seq
	if newer {
		r.host.Peerstore().ClearAddrs(rec.PeerID)
	}
	taken, err := book.ConsumePeerRecord(e, ttl)
	return newer && taken && err == nil
}

// seq returns the sequence number of the record known of p.
func (r *records) seq(book peerstore.CertifiedAddrBook, p peer.ID) (uint64, bool) {
	e := book.GetPeerRecord(p)
	if e == nil {
		return 0, false
	}
	var rec peer.PeerRecord
	if err := e.TypedRecord(&rec); err != nil {
		return 0, false
	}
	return rec.Seq, true
}

func openPeerRecord(raw []byte) (*record.Envelope, *peer.PeerRecord, error) {
	if len(raw) > maxPeerRecord {
		return nil, nil, fmt.Errorf("peer record: %d bytes, at most %d", len(raw), maxPeerRecord)
	}
	var rec peer.PeerRecord
	e, err := record.ConsumeTypedEnvelope(raw, &rec)
	if err != nil {
		return nil, nil, fmt.Errorf("peer record: %w", err)
	}
	if !rec.PeerID.MatchesPublicKey(e.PublicKey) {
		return nil, nil, fmt.Errorf("peer record: of %s, signed by another", rec.PeerID)
	}
	if len(rec.Addrs) > maxAddrs {
		return nil, nil, fmt.Errorf("peer record: %d addresses, at most %d", len(rec.Addrs), maxAddrs)
	}
	return e, &rec, nil
}
