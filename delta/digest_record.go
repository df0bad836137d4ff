package delta

import (
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"
)

// digestsMagic opens digests in a file of this host; its last byte is the version of the layout:
//
//	magic 8 | digest of the schema's ID 32 | block digests 16 each | xxh3-128 of all before 16
//
// There is no count: it follows from the schema.
const digestsMagic = "SPCDIGS\x01"

// Encode returns d, of a state under s, as DecodeDigests reads it.
func (d *Digests) Encode(s *Schema) ([]byte, error) {
	if len(d.blocks) != s.Blocks() {
		return nil, fmt.Errorf("digests: %d, but a state under this schema has %d blocks", len(d.blocks), s.Blocks())
	}
	id, err := Digest(s.ID())
	if err != nil {
		return nil, fmt.Errorf("digests: %w", err)
	}
	b := make([]byte, 0, digestsSize(s))
	b = append(append(b, digestsMagic...), id...)
	for _, block := range d.blocks {
		b = append(b, block[:]...)
	}
	sum := xxh3.Hash128(b).Bytes()
	return append(b, sum[:]...), nil
}

// DecodeDigests reads what Encode wrote under the same schema and refuses everything else. It finds damage, not
// forgery: compare the root of what it returns.
func DecodeDigests(b []byte, s *Schema) (*Digests, error) {
	id, err := Digest(s.ID())
	if err != nil {
		return nil, fmt.Errorf("digests: %w", err)
	}
	if uint64(len(b)) != digestsSize(s) {
		return nil, fmt.Errorf("digests: %d bytes, want %d: of another schema, or cut off", len(b), digestsSize(s))
	}
	head, rest := b[:len(digestsMagic)+RootSize], b[len(digestsMagic)+RootSize:]
	if string(head) != digestsMagic+string(id) {
		return nil, errors.New("digests: of another schema or format")
	}
	rest, sum := rest[:len(rest)-blockDigestSize], rest[len(rest)-blockDigestSize:]
	if want := xxh3.Hash128(b[:len(b)-blockDigestSize]).Bytes(); string(sum) != string(want[:]) {
		return nil, errors.New("digests: damaged")
	}
	return &Digests{blocks: readDigests(rest)}, nil
}

// digestsSize returns the length of encoded digests.
func digestsSize(s *Schema) uint64 {
	return uint64(len(digestsMagic)+RootSize) + blockDigestSize*(uint64(s.Blocks())+1)
}

func readDigests(b []byte) []blockDigest {
	d := make([]blockDigest, len(b)/blockDigestSize)
	for i := range d {
		d[i] = blockDigest(b[i*blockDigestSize:])
	}
	return d
}
