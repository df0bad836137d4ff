package node

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
)

func TestKeyRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "node.key")
	made, err := CreateKey(path)
	if err != nil {
		t.Fatal(err)
	}
	read, err := LoadKey(path)
	if err != nil || !read.Equals(made) {
		t.Fatalf("got %v, %v, want the key that was made", read, err)
	}
	id, err := peer.IDFromPrivateKey(made)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), id.String()) || !strings.Contains(string(text), "Keep it secret") {
		t.Errorf("got %q, %v, want a header that says what it is", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want mode 0600", info, err)
	}
}

func TestCreateKeyNeverOverwrites(t *testing.T) {
	path := write(t, "precious")
	if _, err := CreateKey(path); err == nil || !strings.Contains(err.Error(), path+" exists already") {
		t.Errorf("got %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "precious" {
		t.Errorf("the file became %q, %v", b, err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left behind %v, %v", left, err)
	}
}

func TestLoadKeyRefuses(t *testing.T) {
	good := filepath.Join(t.TempDir(), "node.key")
	if _, err := CreateKey(good); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.Split(strings.TrimSpace(string(b)), "\n")[2]
	for text, want := range map[string]string{
		"":                              "no key in it",
		"# only the header\n":           "no key in it",
		"hello world\n":                 ":1: not base64",
		"aGVsbG8=\n":                    ":1: not a private key",
		secret + "\n" + secret + "\n":   ":2: a second key",
		"# cut short\n" + secret[:40]:   ":2: not a private key",
		secret[:40] + "!" + secret[41:]: ":1: not base64",
		secpKey(t):                      "want Ed25519",
	} {
		path := write(t, text)
		_, err := LoadKey(path)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", want, err, want)
		}
		if err != nil && strings.Contains(err.Error(), secret[8:24]) {
			t.Errorf("%q: the error tells the secret: %v", want, err)
		}
	}
}

// TestDamagedKeyIsNoOther flips every bit of a key file, and of the key in it. What still loads is the same key.
func TestDamagedKeyIsNoOther(t *testing.T) {
	made, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := encodeKey(made)
	if err != nil {
		t.Fatal(err)
	}
	header, secret := text[:bytes.LastIndexByte(text[:len(text)-1], '\n')+1], text[bytes.LastIndexByte(text[:len(text)-1], '\n')+1:]
	for i := range 8 * len(text) {
		b := bytes.Clone(text)
		b[i/8] ^= 1 << (i % 8)
		if key, err := parseKey("node.key", b); err == nil && !key.Equals(made) {
			t.Errorf("bit %d of %q: another key", i%8, b)
		}
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(secret)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 * len(raw) {
		b := bytes.Clone(raw)
		b[i/8] ^= 1 << (i % 8)
		for _, comment := range []string{string(header), ""} {
			if _, err := parseKey("node.key", []byte(comment+base64.StdEncoding.EncodeToString(b))); err == nil || !strings.Contains(err.Error(), "node.key") {
				t.Errorf("bit %d of the key: got %v", i, err)
			}
		}
	}
}

// TestKeyOfAnother puts a whole key under the comment of another one.
func TestKeyOfAnother(t *testing.T) {
	var files [2][]byte
	for i := range files {
		key, _, err := crypto.GenerateEd25519Key(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if files[i], err = encodeKey(key); err != nil {
			t.Fatal(err)
		}
	}
	at := bytes.LastIndexByte(files[0][:len(files[0])-1], '\n') + 1
	mixed := append(bytes.Clone(files[0][:at]), files[1][at:]...)
	if _, err := LoadKey(write(t, string(mixed))); err == nil || !strings.Contains(err.Error(), "its comment says "+saidID(files[0])) {
		t.Errorf("got %v", err)
	}
	if _, err := LoadKey(write(t, string(files[1][at:]))); err != nil {
		t.Errorf("without a comment: %v", err)
	}
}

func secpKey(t *testing.T) string {
	key, _, err := crypto.GenerateKeyPair(crypto.Secp256k1, 0)
	if err != nil {
		t.Fatal(err)
	}
	text, err := encodeKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestLoadKeyRefusesOpenFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.key")
	if _, err := LoadKey(path); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "sparsecast keygen") {
		t.Errorf("absent: got %v", err)
	}
	if _, err := CreateKey(path); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadKey(path); err == nil || !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Errorf("mode %o: got %v", mode, err)
		}
	}
}
