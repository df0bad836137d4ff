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
		e, rec, err := openPeerRecord(raw)
		if err != nil || rec.PeerID == r.host.ID() || !r.members.Allowed(rec.PeerID) {
			continue
		}
		// Of a connected peer, identify knows the addresses first hand.
		if r.host.Network().Connectedness(rec.PeerID) != network.Connected {
			r.consume(e, rec)
		}
	}
}

// consume replaces what is known of a peer by a newer record. Addresses of before are dropped: dead ones delay dials.
func (r *records) consume(e *record.Envelope, rec *peer.PeerRecord) {
	book, ok := peerstore.GetCertifiedAddrBook(r.host.Peerstore())
	if !ok {
		return
	}
	newer := true
	if old := book.GetPeerRecord(rec.PeerID); old != nil {
		var known peer.PeerRecord
		if err := old.TypedRecord(&known); err == nil {
			if known.Seq > rec.Seq {
				return
			}
			newer = known.Seq < rec.Seq
		}
	}
	if newer {
		r.host.Peerstore().ClearAddrs(rec.PeerID)
	}
	if _, err := book.ConsumePeerRecord(e, recordTTL); err == nil && newer {
		r.fresh(rec.PeerID)
	}
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
