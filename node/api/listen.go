package api

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// Listener is an open address of the API, and the token that its callers must show.
type Listener struct {
	net.Listener
	token string // empty on a Unix socket, which its file mode guards
}

// Listen opens address; tokenFile matters on TCP only, and is made when it is absent.
// A Unix socket that nobody answers on any more is replaced.
func Listen(address, tokenFile string) (*Listener, error) {
	a, err := ParseAddress(address)
	if err != nil {
		return nil, err
	}
	if a.Network == "unix" {
		return listenUnix(a.Target)
	}
	token, err := ensureToken(tokenFile)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", a.Target)
	if err != nil {
		return nil, fmt.Errorf("api: %w: set api: to a free port", err)
	}
	return &Listener{ln, token}, nil
}

func listenUnix(path string) (*Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("api: %w: its directory must exist and belong to the user who runs the node", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("api: %w", err), ln.Close())
	}
	return &Listener{Listener: ln}, nil
}

// removeStale removes the socket at path when the node that made it is gone.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("api: %w", err)
	}
	if info.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("api: %s exists and is no socket: move it away, or set api: to another path", path)
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
		return fmt.Errorf("api: another node answers on %s: stop it, or set api: to another path", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("api: is another node there? %w", err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("api: remove stale socket: %w", err)
	}
	return nil
}
