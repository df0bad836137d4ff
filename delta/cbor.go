package delta

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// Records on the wire are canonical CBOR (RFC 8949 §4.2.1): one content has one encoding, and so one ID.
var (
	canonical = must(cbor.CoreDetEncOptions().EncMode())
	bounded   = must(cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		MaxNestedLevels:   8,
		MaxArrayElements:  1 << 20,
		MaxMapPairs:       1 << 10,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// MarshalRecord returns the canonical CBOR of v.
func MarshalRecord(v any) ([]byte, error) { return canonical.Marshal(v) }

// UnmarshalRecord reads b into v, which points to a struct, and refuses whatever MarshalRecord would not have
// written: unknown or doubled keys, other orders, longer integers, trailing bytes.
func UnmarshalRecord(b []byte, v any) error {
	if err := bounded.Unmarshal(b, v); err != nil {
		return err
	}
	again, err := canonical.Marshal(v)
	if err != nil {
		return fmt.Errorf("re-encode: %w", err)
	}
	if !bytes.Equal(b, again) {
		return errors.New("not in canonical form")
	}
	return nil
}

// unmarshalVersion is UnmarshalRecord for a record that begins with its format's number, under the key 0, which lies
// below 24. Another format is named as such, whatever its other fields are.
func unmarshalVersion(b []byte, v any, want byte) error {
	const smallMap = 5 << 5 // the major type of a map
	if len(b) > 2 && b[0]&^0x1f == smallMap && b[1] == 0 && b[2] < 24 && b[2] != want {
		return fmt.Errorf("format %d, this build reads %d; upgrade the older sparsecast", b[2], want)
	}
	if err := UnmarshalRecord(b, v); err != nil {
		return err
	}
	if len(b) < 3 || b[1] != 0 || b[2] != want {
		return fmt.Errorf("no number of a format")
	}
	return nil
}
