package delta

import (
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/ipfs/go-cid"
	"github.com/multiformats/go-multihash"
)

// ErrMismatch says that bytes do not hash to the content ID they were asked for by.
var ErrMismatch = errors.New("content does not match its ID")

// RootSize is the length of a Root in bytes.
const RootSize = 32

// Root names all the weights under one schema: equal roots mean equal schema and equal bits.
// The zero Root stands for "nothing", the base of an anchor.
type Root [RootSize]byte

// Sum returns the content ID of data: CIDv1, raw codec, sha2-256.
func Sum(data []byte) cid.Cid {
	mh, err := multihash.Sum(data, multihash.SHA2_256, -1)
	if err != nil {
		panic(err) // sha2-256 is always registered
	}
	return cid.NewCidV1(cid.Raw, mh)
}

// FromDigest returns the content ID whose sha2-256 digest is the 32 bytes of d.
func FromDigest(d []byte) (cid.Cid, error) {
	if len(d) != RootSize {
		return cid.Undef, fmt.Errorf("content ID: digest of %d bytes, want 32", len(d))
	}
	mh, err := multihash.Encode(d, multihash.SHA2_256)
	if err != nil {
		return cid.Undef, fmt.Errorf("content ID: %w", err)
	}
	return cid.NewCidV1(cid.Raw, mh), nil
}

// Digest returns the sha2-256 digest inside an ID made by Sum or FromDigest.
// It reports an error for any other form of CID, so that one content has exactly one name.
func Digest(id cid.Cid) ([]byte, error) {
	if !id.Defined() {
		return nil, errors.New("content ID: undefined")
	}
	p := id.Prefix()
	if p.Version != 1 || p.Codec != cid.Raw || p.MhType != multihash.SHA2_256 || p.MhLength != RootSize {
		return nil, fmt.Errorf("content ID %s: want CIDv1, raw, sha2-256", id)
	}
	h := id.Hash()
	return h[len(h)-RootSize:], nil
}

// Check reports ErrMismatch unless data is what id names.
func Check(id cid.Cid, data []byte) error {
	if !Sum(data).Equals(id) {
		return fmt.Errorf("%s: %w", id, ErrMismatch)
	}
	return nil
}

// IsZero tells whether r is the root of nothing.
func (r Root) IsZero() bool { return r == Root{} }

// String returns r in hexadecimal.
func (r Root) String() string { return hex.EncodeToString(r[:]) }

// Short returns the first 12 hexadecimal digits of r, for logs and tables.
func (r Root) Short() string { return r.String()[:12] }

// MarshalText writes r in hexadecimal, so that roots read well in JSON.
func (r Root) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (r *Root) UnmarshalText(b []byte) error {
	d, err := hex.DecodeString(string(b))
	if err != nil || len(d) != RootSize {
		return fmt.Errorf("root %q: want 64 hexadecimal digits", b)
	}
	copy(r[:], d)
	return nil
}
