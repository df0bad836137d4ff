package mesh

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/record"
)

// Why a sealed record is not believed.
var (
	errUnreadable = errors.New("unreadable")
	errForged     = errors.New("forged")
)

// sealed is a record together with the signed bytes that it came in. Those bytes are what is stored and passed on,
// so that the same signature holds in gossip, in the head protocol and on disk.
type sealed[T any] struct {
	Value  T
	Signer peer.ID
	Raw    []byte
}

// body is the signed form of a record; the domain keeps a signature for one kind from passing as another.
type body struct {
	domain string
	bytes  []byte
}

var (
	headDomain      = "sparsecast-head"
	catalogueDomain = "sparsecast-catalogue"
)

func (b *body) Domain() string                   { return b.domain }
func (b *body) Codec() []byte                    { return []byte(b.domain) }
func (b *body) MarshalRecord() ([]byte, error)   { return b.bytes, nil }
func (b *body) UnmarshalRecord(raw []byte) error { b.bytes = raw; return nil }

func sealHead(h Head, key crypto.PrivKey) (sealed[Head], error) {
	b, err := h.Encode()
	if err != nil {
		return sealed[Head]{}, err
	}
	raw, signer, err := seal(headDomain, b, key)
	return sealed[Head]{h, signer, raw}, err
}

func sealCatalogue(c Catalogue, key crypto.PrivKey) (sealed[Catalogue], error) {
	b, err := c.Encode()
	if err != nil {
		return sealed[Catalogue]{}, err
	}
	raw, signer, err := seal(catalogueDomain, b, key)
	return sealed[Catalogue]{c, signer, raw}, err
}

func seal(domain string, payload []byte, key crypto.PrivKey) ([]byte, peer.ID, error) {
	e, err := record.Seal(&body{domain, payload}, key)
	if err != nil {
		return nil, "", fmt.Errorf("sign %s: %w", domain, err)
	}
	signer, err := peer.IDFromPublicKey(e.PublicKey)
	if err != nil {
		return nil, "", fmt.Errorf("sign %s: %w", domain, err)
	}
	raw, err := e.Marshal()
	return raw, signer, err
}

// unseal returns the payload of raw and who signed it. Errors are errUnreadable or errForged.
// The signer is looked up before the signature is computed: strangers get no work out of us.
func unseal(domain string, raw []byte, limit int, listed func(peer.ID) bool) ([]byte, peer.ID, error) {
	if len(raw) > limit {
		return nil, "", fmt.Errorf("%w: %d bytes, at most %d", errUnreadable, len(raw), limit)
	}
	e, err := record.UnmarshalEnvelope(raw)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", errUnreadable, err)
	}
	// One record has one set of bytes, or a peer could make endless valid variants of it.
	if again, err := e.Marshal(); err != nil || !bytes.Equal(again, raw) {
		return nil, "", fmt.Errorf("%w: envelope not in canonical form", errUnreadable)
	}
	signer, err := peer.IDFromPublicKey(e.PublicKey)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if !listed(signer) {
		return nil, signer, fmt.Errorf("%w: signed by %s, who is no publisher of this run; if that is your trainer, put its ID under publishers", errForged, signer)
	}
	b := &body{domain: domain}
	if !bytes.Equal(e.PayloadType, b.Codec()) {
		return nil, signer, fmt.Errorf("%w: a %q where a %s belongs", errUnreadable, e.PayloadType, domain)
	}
	if _, err := record.ConsumeTypedEnvelope(raw, b); err != nil {
		return nil, signer, fmt.Errorf("%w: %w", errForged, err)
	}
	return b.bytes, signer, nil
}

// openHead checks and reads a signed head. It does not look at the run or at versions; book does. With an error comes
// the claimed signer, as far as it could be read.
func openHead(raw []byte, listed func(peer.ID) bool) (sealed[Head], error) {
	b, signer, err := unseal(headDomain, raw, maxHead, listed)
	if err != nil {
		return sealed[Head]{Signer: signer}, fmt.Errorf("head: %w", err)
	}
	h, err := DecodeHead(b)
	if err != nil {
		return sealed[Head]{Signer: signer}, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return sealed[Head]{h, signer, raw}, nil
}

// openCatalogue is openHead for catalogues.
func openCatalogue(raw []byte, listed func(peer.ID) bool) (sealed[Catalogue], error) {
	b, signer, err := unseal(catalogueDomain, raw, maxCatalogue, listed)
	if err != nil {
		return sealed[Catalogue]{Signer: signer}, fmt.Errorf("catalogue: %w", err)
	}
	c, err := DecodeCatalogue(b)
	if err != nil {
		return sealed[Catalogue]{Signer: signer}, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return sealed[Catalogue]{c, signer, raw}, nil
}
