package node

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/sparsecast/sparsecast/node/files"
)

// A key file is text: comment lines, and one line with the private key as libp2p marshals it, in base64.
const keyHeader = `# Identity of the sparsecast node %s (ed25519 private key).
# Keep it secret and keep a copy: whoever holds this file is that node.
`

// LoadKey reads the identity that CreateKey wrote, and refuses a file that others can read.
func LoadKey(path string) (crypto.PrivKey, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("node key: %w: make one with: sparsecast keygen %s", err, path)
	}
	if err != nil {
		return nil, fmt.Errorf("node key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("node key %s: others can read or change it (mode %04o): chmod 600 %s", path, info.Mode().Perm(), path)
	}
	var key crypto.PrivKey
	err = eachLine(path, func(text, _ string) error {
		if key != nil {
			return errors.New("a second key: keep one a file")
		}
		key, err = decodeKey(text)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("node key: %w", err)
	}
	if key == nil {
		return nil, fmt.Errorf("node key %s: no key in it: restore it from a copy, or remove it and make a new one", path)
	}
	return key, nil
}

func decodeKey(text string) (crypto.PrivKey, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, errors.New("not base64: restore the file from a copy") // the cause would print part of the key
	}
	key, err := crypto.UnmarshalPrivateKey(b)
	if err != nil {
		return nil, errors.New("not a private key of libp2p: restore the file from a copy")
	}
	if key.Type() != crypto.Ed25519 {
		return nil, fmt.Errorf("a key of type %s, want Ed25519: make one with sparsecast keygen", key.Type())
	}
	return key, nil
}

// CreateKey makes a new identity and writes it to path, which must not exist.
func CreateKey(path string) (crypto.PrivKey, error) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make node key: %w", err)
	}
	text, err := encodeKey(key)
	if err != nil {
		return nil, fmt.Errorf("make node key: %w", err)
	}
	if err := writeNew(path, text); err != nil {
		return nil, fmt.Errorf("make node key: %w", err)
	}
	return key, nil
}

func encodeKey(key crypto.PrivKey) ([]byte, error) {
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return nil, err
	}
	b, err := crypto.MarshalPrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := fmt.Appendf(nil, keyHeader, id)
	return append(base64.StdEncoding.AppendEncode(text, b), '\n'), nil
}

// writeNew writes a durable file for this user only. It links a finished temporary file to its name, which fails when
// the name is taken: no half of a key is ever seen and no key is ever replaced.
func writeNew(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".tmp-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already: use it, or move it away first", path)
	} else if err != nil {
		return err
	}
	return files.SyncDir(dir)
}
