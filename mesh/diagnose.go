package mesh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
)

// diagnose says in a few words why a dial failed. It may have tried several addresses: the answer that tells most
// counts. Of an address in the bootstrap file the operator can put right more than of one that a peer told.
func diagnose(err error, bootstrap bool) string {
	var mismatch sec.ErrPeerIDMismatch
	switch {
	case errors.As(err, &mismatch):
		hint := ""
		if bootstrap {
			hint = ": correct the ID in the bootstrap file"
		}
		return fmt.Sprintf("peer id mismatch: expected %s, remote is %s%s", mismatch.Expected, mismatch.Actual, hint)
	case isAny(err, syscall.ECONNREFUSED):
		return "connection refused"
	case isAny(err, io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE):
		return "the other side hung up during the handshake: is it a sparsecast node?"
	case isAny(err, syscall.EHOSTUNREACH, syscall.ENETUNREACH):
		return "no route"
	case isTimeout(err):
		return "timeout"
	case isAny(err, swarm.ErrNoAddresses, swarm.ErrNoGoodAddresses):
		return "no usable address: does its host name resolve?"
	}
	return firstLine(err)
}

func isAny(err error, targets ...error) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}

// firstLine returns what an address answered, or else what the dialler itself says.
func firstLine(err error) string {
	var answer *swarm.TransportError
	if errors.As(err, &answer) {
		err = answer.Cause
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return clip(line)
}
