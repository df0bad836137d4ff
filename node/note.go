package node

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/sparsecast/sparsecast/node/files"
)

// What a node notes for its next start is JSON behind a line with its SHA-256, so that a bit that flips on the disk is
// damage and not another version.

// note is a file for what a node must not forget.
type note[T any] struct {
	file string
	what string // as errors name it
}

// save returns when the note would outlive a loss of power.
func (n note[T]) save(dir *files.Dir, v T) error {
	b, err := marshalChecked(v)
	if err != nil {
		return err
	}
	if err := dir.WriteDurable(n.file, b); err != nil {
		return fmt.Errorf("note %s: %w", n.what, err)
	}
	return nil
}

// load returns what was saved last; ok is false when nothing was.
func (n note[T]) load(dir *files.Dir) (v T, ok bool, err error) {
	b, err := dir.ReadFile(n.file)
	if errors.Is(err, fs.ErrNotExist) {
		return v, false, nil
	}
	if err == nil {
		err = unmarshalChecked(b, &v)
	}
	if err != nil {
		var none T
		return none, false, fmt.Errorf("%s: %w", dir.Path(n.file), err)
	}
	return v, true, nil
}

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
