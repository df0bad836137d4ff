package api

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

const (
	unixPrefix = "unix:"
	// maxSocketPath is below what every kernel takes (104 bytes on BSD, 108 on Linux).
	maxSocketPath = 100
	maxTokenFile  = 4096
)

// Address is where a node's API listens.
type Address struct {
	Network string // "unix" or "tcp"
	Target  string // path of the socket, or loopback host:port
}

// ParseAddress reads "unix:/path/to.sock", where unix: may be left out of an absolute path, or a loopback "host:port".
func ParseAddress(s string) (Address, error) {
	if filepath.IsAbs(s) {
		return parseUnix(s)
	}
	if path, ok := strings.CutPrefix(s, unixPrefix); ok {
		return parseUnix(path)
	}
	host, _, err := net.SplitHostPort(s)
	if err != nil {
		return Address{}, fmt.Errorf("api address %q: want unix:/path/to.sock or 127.0.0.1:port", s)
	}
	ip, err := netip.ParseAddr(host)
	if host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return Address{}, fmt.Errorf("api address %q: the API is for this machine only; want 127.0.0.1:port or [::1]:port, and a tunnel from elsewhere", s)
	}
	return Address{"tcp", s}, nil
}

func parseUnix(path string) (Address, error) {
	if path == "" {
		return Address{}, fmt.Errorf("api address %q: want unix:/path/to.sock", unixPrefix)
	}
	if len(path) > maxSocketPath {
		return Address{}, fmt.Errorf("api socket %s: path of %d bytes, the system takes %d: set api: to a shorter path", path, len(path), maxSocketPath)
	}
	return Address{"unix", path}, nil
}

func (a Address) String() string {
	if a.Network == "unix" {
		return unixPrefix + a.Target
	}
	return a.Target
}

// readToken returns the bearer token in file.
func readToken(file string) (string, error) {
	if file == "" {
		return "", errors.New("api token: none given: an API on TCP asks for the token in api.token in the node's data directory (--token-file)")
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", fmt.Errorf("api token: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxTokenFile {
		return "", fmt.Errorf("api token %s: want a small text file", file)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("api token %s: others can read it: chmod 600 %s", file, file)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("api token: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if len(token) < 16 {
		return "", fmt.Errorf("api token %s: %d characters, want at least 16: remove the file and start the node, which makes a new one", file, len(token))
	}
	return token, nil
}

// ensureToken returns the bearer token in file and makes a random one when the file is absent.
func ensureToken(file string) (string, error) {
	token, err := readToken(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", fmt.Errorf("api token: %w", err)
	}
	token = rand.Text()
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("api token: %w", err)
	}
	return token, nil
}
