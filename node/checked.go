package node

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// What a node notes for its next start is JSON behind a line with its SHA-256, so that a bit that flips on the disk is
// damage and not another version.

var errDamaged = errors.New("damaged: its checksum does not match")

func marshalChecked(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	return fmt.Appendf(nil, "%x\n%s\n", sum, b), nil
}

func unmarshalChecked(data []byte, v any) error {
	digits, b, ok := bytes.Cut(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	sum := sha256.Sum256(b)
	if !ok || string(digits) != hex.EncodeToString(sum[:]) {
		return errDamaged
	}
	return json.Unmarshal(b, v)
}
