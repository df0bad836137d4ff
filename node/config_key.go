package node

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/sparsecast/sparsecast/node/files"
)

// A key file is text: comment lines, and one line with the private key as libp2p marshals it, in base64.
const keyHeader = `# Identity of the sparsecast node %s (ed25519 private key).
# Keep it secret and keep a copy: whoever holds this file is that node.
`

// maxKeyFile bounds a key file, in bytes; one that CreateKey wrote has some 250.
const maxKeyFile = 16 << 10

// LoadKey reads the identity that CreateKey wrote, and refuses a file that others can read.
func LoadKey(path string) (crypto.PrivKey, error) { return loadKey(files.OS{}, path) }

func loadKey(fsys files.FS, path string) (crypto.PrivKey, error) {
	info, err := fsys.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("node key: %w: make one with: sparsecast keygen %s", err, path)
	}
	if err != nil {
		return nil, fmt.Errorf("node key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("node key %s: others can read or change it (mode %04o): chmod 600 %s", path, info.Mode().Perm(), path)
	}
	b, err := readSmall(fsys, path, maxKeyFile)
	if err != nil {
		return nil, fmt.Errorf("node key: %w", err)
	}
	key, err := parseKey(path, b)
	if err != nil {
		return nil, fmt.Errorf("node key: %w", err)
	}
	return key, nil
}

// parseKey reads the content of a key file. A damaged one must not start a node under another ID, which no peer knows.
func parseKey(path string, b []byte) (key crypto.PrivKey, err error) {
	err = eachLineOf(path, b, func(text, _ string) error {
		if key != nil {
			return errors.New("a second key: keep one a file")
		}
		key, err = decodeKey(text)
		return err
	})
	if err != nil {
		return nil, err
	}
	if key == nil {
		return nil, fmt.Errorf("%s: no key in it: restore it from a copy, or remove it and make a new one", path)
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if said := saidID(b); said != "" && said != id.String() {
		return nil, fmt.Errorf("%s: the key of %s, while its comment says %s: restore the file from a copy, or remove the comment", path, id, said)
	}
	return key, nil
}

// saidID returns the ID that the comment of a key file tells, if it does.
func saidID(b []byte) string {
	before, after, _ := strings.Cut(keyHeader, "%s")
	_, rest, found := strings.Cut(string(b), before)
	id, _, whole := strings.Cut(rest, after[:2]) // " ("
	if !found || !whole {
		return ""
	}
	return id
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
	raw, err := key.Raw()
	if err != nil || len(raw) != ed25519.PrivateKeySize || !bytes.Equal(raw, ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize])) {
		return nil, errors.New("damaged: its two halves do not belong together: restore the file from a copy")
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
	return files.OS{}.SyncDir(dir)
}
