package mesh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/multiformats/go-multiaddr"
)

func TestDiagnosesAreShort(t *testing.T) {
	dial := func(causes ...error) error {
		e := &swarm.DialError{Peer: "p", Cause: swarm.ErrAllDialsFailed}
		for _, c := range causes {
			e.DialErrors = append(e.DialErrors, swarm.TransportError{Address: multiaddr.StringCast("/ip4/10.0.0.1/tcp/1"), Cause: c})
		}
		return fmt.Errorf("failed to dial: %w", e)
	}
	op := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for want, err := range map[string]error{
		"connection refused": dial(context.DeadlineExceeded, op(syscall.EHOSTUNREACH), op(syscall.ECONNREFUSED)),
		"no route":           dial(op(syscall.ENETUNREACH)),
		"timeout":            fmt.Errorf("failed to dial: %w", context.DeadlineExceeded),
		"no usable address: does its host name resolve?": &swarm.DialError{Cause: swarm.ErrNoGoodAddresses},
		"the moon is in the way":                         dial(errors.New("the moon is in the way\nand more")),
		strings.Repeat("x", maxNote-3) + "...":           errors.New(strings.Repeat("x", 1000)),
	} {
		if got := diagnose(err, true); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

// TestRealDialsAreDiagnosed dials what is there, but is not what is looked for.
func TestRealDialsAreDiagnosed(t *testing.T) {
	open := NewMembers()
	open.Open = true
	dialer := loopbackHost(t, 1, open, new(Stats), "/ip4/127.0.0.1/tcp/0")
	try := func(addr multiaddr.Multiaddr, words string) {
		t.Helper()
		p := peer.AddrInfo{ID: idOf(testKey(9)), Addrs: []multiaddr.Multiaddr{addr}}
		dialer.Peerstore().ClearAddrs(p.ID)
		clearBackoff(dialer, p.ID)
		if err := dialer.Connect(t.Context(), p); err == nil {
			t.Fatalf("%s: connected", addr)
		} else if got := diagnose(err, true); !strings.Contains(got, words) {
			t.Errorf("%s: %q for %v", addr, got, err)
		}
	}
	for _, listen := range []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"} {
		other := loopbackHost(t, 2, open, new(Stats), listen)
		try(other.Network().ListenAddresses()[0], fmt.Sprintf("peer id mismatch: expected %s, remote is %s: correct the ID", idOf(testKey(9)), other.ID()))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			c.Close()
		}
	}()
	addr := multiaddr.StringCast(fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", l.Addr().(*net.TCPAddr).Port))
	try(addr, "hung up during the handshake")
	l.Close()
	try(addr, "connection refused")
	try(multiaddr.StringCast("/dns4/nowhere.invalid/tcp/1"), "does its host name resolve?")
}
