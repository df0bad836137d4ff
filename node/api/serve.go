package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// graceTime is how long calls in progress may go on after the server was told to stop.
const graceTime = 2 * time.Second

// Serve answers with h until ctx ends, then lets calls in progress end and closes the listener. It returns nil
// when ctx ended. The contexts of calls end with ctx, so a long pull does not hold up the stop.
func (l *Listener) Serve(ctx context.Context, h http.Handler) error {
	if l.token != "" {
		h = requireToken(l.token, h)
	}
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l.Listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("api: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceTime)
	defer cancel()
	err := s.Shutdown(grace)
	if err != nil {
		err = errors.Join(fmt.Errorf("api: stop: %w", err), s.Close())
	}
	if stopped := <-served; !errors.Is(stopped, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("api: %w", stopped))
	}
	return err
}

// requireToken lets a request through when it carries the token. Health needs none: probes cannot read files,
// and it tells nothing that an open port does not.
func requireToken(token string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(token)) // equal lengths, so the comparison tells nothing about the token's
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		got := sha256.Sum256([]byte(given))
		if r.URL.Path != "/healthz" && subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			fail(w, NewError(http.StatusUnauthorized, errors.New("no valid bearer token"), "send the content of the file api.token in the node's data directory"))
			return
		}
		next.ServeHTTP(w, r)
	})
}
