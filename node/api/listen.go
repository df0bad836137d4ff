package api

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
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
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("api: %w: its directory must exist and belong to the user who runs the node", err)
	}
	ln.SetUnlinkOnClose(false)
	mine, err := os.Lstat(path)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("api: %w", err), ln.Close())
	}
	return &Listener{Listener: &ownSocket{ln, sync.OnceValue(func() error { return removeOwn(path, mine) })}}, nil
}

// ownSocket is a Unix socket that removes its own name and no other.
type ownSocket struct {
	net.Listener
	unlink func() error // works once
}

// Close stops listening and removes the socket's name, if that is still this socket. The name goes first: once the
// socket is closed, the system may give its inode number to another.
func (s *ownSocket) Close() error {
	return errors.Join(s.unlink(), s.Listener.Close())
}

// removeOwn removes path unless it is another file than mine by now, such as the socket of a node that was started
// after the directory was removed and made again.
func removeOwn(path string, mine fs.FileInfo) error {
	now, err := os.Lstat(path)
	if err == nil && os.SameFile(mine, now) {
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("api: remove socket: %w", err)
	}
	return nil
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
