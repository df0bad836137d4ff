package api

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/sparsecast/sparsecast/delta"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a node whose answers a test chooses.
type fake struct {
	status  Status
	publish func(context.Context, PublishRequest) (PublishResult, error)
	pull    func(context.Context, PullRequest) (PullResult, error)
	pinned  PinResult // what it was pinned to last
	served  VersionInfo
}

// In returns the fake itself for the run default, the only one unless more are named.
func (f *fake) In(run string) (Run, error) {
	if run != "" && run != f.status.Run {
		return nil, NewError(http.StatusNotFound, errors.New("no such run: "+run), "there is another")
	}
	return f, nil
}

func (f *fake) Runs(context.Context) RunList {
	return RunList{Runs: []RunInfo{{Run: f.status.Run, State: f.status.State, Served: f.status.Served}}}
}

func (f *fake) Status(context.Context) Status { return f.status }

func (f *fake) Publish(ctx context.Context, r PublishRequest) (PublishResult, error) {
	return f.publish(ctx, r)
}

func (f *fake) Pull(ctx context.Context, r PullRequest) (PullResult, error) { return f.pull(ctx, r) }

func (f *fake) Pin(_ context.Context, r VersionRequest) (PinResult, error) {
	f.pinned.Pin = &Pin{Number: *r.Number}
	if r.Epoch != nil {
		f.pinned.Pin.Epoch = *r.Epoch
	}
	return f.pinned, nil
}

func (f *fake) Unpin(context.Context) (PinResult, error) {
	f.pinned.Pin = nil
	return f.pinned, nil
}

func (f *fake) Pinned(context.Context) (PinResult, error) { return f.pinned, nil }

func (f *fake) Check(context.Context) (CheckResult, error) {
	return CheckResult{Slots: []CheckedSlot{{Slot: "a", Damaged: true, Blocks: 3, Repaired: true}}}, nil
}

func (f *fake) Confirm(_ context.Context, r VersionRequest) (ConfirmResult, error) {
	if *r.Number != f.served.Number {
		return ConfirmResult{}, NewError(http.StatusConflict, errors.New("another is served"), "pull again")
	}
	return ConfirmResult{Served: f.served}, nil
}

// start serves b until the test ends or stop is called, and returns a client for it.
func start(t *testing.T, address, tokenFile string, b Backend) (c *Client, stop func()) {
	t.Helper()
	ln, err := Listen(address, tokenFile)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(address, ":0") {
		address = ln.Addr().String()
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- ln.Serve(ctx, NewHandler(b, prometheus.NewRegistry())) }()
	c, err = Dial(address, tokenFile)
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
		c.Close()
	})
	t.Cleanup(stop)
	return c, stop
}

func socket(t *testing.T) string { return "unix:" + filepath.Join(t.TempDir(), "api.sock") }

func TestCallsOverUnixSocket(t *testing.T) {
	want := VersionInfo{Epoch: 7, Number: 42, Root: delta.Root{1, 2}, Elements: 100, Changed: 3, Dense: 200, Coded: 5, PublishedAt: 8, ReadyAt: 9}
	b := &fake{
		status: Status{ID: "12D3", Role: "rollout", State: StateReady, Served: &want, Path: "/slots/0", Counters: map[string]uint64{"chunks_sent": 4}},
		publish: func(_ context.Context, r PublishRequest) (PublishResult, error) {
			if r.Path != "/ckpt" || r.Number == nil || *r.Number != 42 {
				t.Errorf("publish got %+v", r)
			}
			return PublishResult{VersionInfo: want, Seconds: 1.5}, nil
		},
		pull: func(_ context.Context, r PullRequest) (PullResult, error) {
			if r.Number != nil || r.TimeoutSeconds != 2 {
				t.Errorf("pull got %+v", r)
			}
			return PullResult{Version: want, Path: "/slots/1"}, nil
		},
	}
	c, _ := start(t, socket(t), "", b)
	if s, err := c.Status(t.Context()); err != nil || *s.Served != want || s.Path != "/slots/0" || s.Counters["chunks_sent"] != 4 {
		t.Errorf("status: got %+v, %v", s, err)
	}
	number := want.Number
	if r, err := c.Publish(t.Context(), PublishRequest{Path: "/ckpt", Number: &number}); err != nil || r.VersionInfo != want || r.Seconds != 1.5 {
		t.Errorf("publish: got %+v, %v", r, err)
	}
	if r, err := c.Pull(t.Context(), PullRequest{TimeoutSeconds: 2}); err != nil || r.Version != want || r.Path != "/slots/1" {
		t.Errorf("pull: got %+v, %v", r, err)
	}
}

func TestErrorsKeepCodeAndHint(t *testing.T) {
	b := &fake{
		publish: func(context.Context, PublishRequest) (PublishResult, error) {
			return PublishResult{}, NewError(http.StatusConflict, errors.New("not a trainer"), "ask the trainer's node")
		},
		pull: func(ctx context.Context, _ PullRequest) (PullResult, error) {
			<-ctx.Done()
			return PullResult{}, context.Cause(ctx)
		},
	}
	c, _ := start(t, socket(t), "", b)
	var e *Error
	if _, err := c.Publish(t.Context(), PublishRequest{Path: "/x"}); !errors.As(err, &e) || e.Code != http.StatusConflict || e.Message != "not a trainer" || e.Hint != "ask the trainer's node" {
		t.Errorf("publish: got %#v", err)
	}
	if _, err := c.Pull(t.Context(), PullRequest{TimeoutSeconds: 0.01}); !errors.As(err, &e) || e.Code != http.StatusGatewayTimeout || e.Hint == "" {
		t.Errorf("pull: got %#v", err)
	}
	if _, err := c.Publish(t.Context(), PublishRequest{Path: "relative"}); !errors.As(err, &e) || e.Code != http.StatusBadRequest {
		t.Errorf("relative path: got %#v", err)
	}
}

func TestStopEndsCallsInProgress(t *testing.T) {
	entered := make(chan struct{})
	b := &fake{pull: func(ctx context.Context, _ PullRequest) (PullResult, error) {
		close(entered)
		<-ctx.Done()
		return PullResult{}, ctx.Err()
	}}
	c, stop := start(t, socket(t), "", b)
	got := make(chan error, 1)
	go func() {
		_, err := c.Pull(t.Context(), PullRequest{})
		got <- err
	}()
	<-entered
	stop()
	var e *Error
	if err := <-got; !errors.As(err, &e) || e.Code != http.StatusServiceUnavailable {
		t.Errorf("got %#v, want the call to be told that the node stops", err)
	}
	if _, err := os.Stat(c.addr.Target); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

func TestCallerWhoLeavesEndsThePull(t *testing.T) {
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	b := &fake{pull: func(ctx context.Context, _ PullRequest) (PullResult, error) {
		cancel()
		<-ctx.Done()
		close(ended)
		return PullResult{}, ctx.Err()
	}}
	c, _ := start(t, socket(t), "", b)
	if _, err := c.Pull(ctx, PullRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	} else if strings.Contains(err.Error(), "http://") {
		t.Errorf("%q tells a URL that nobody gave", err)
	}
	<-ended
}

func TestNoNodeAnswers(t *testing.T) {
	c, err := Dial(socket(t), "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var e *Error
	if _, err := c.Status(t.Context()); !errors.As(err, &e) || e.Code != 0 || !strings.Contains(e.Hint, "sparsecast node --config") || !strings.Contains(e.Message, c.addr.String()) {
		t.Errorf("got %#v, want a hint to start the node", err)
	}
	if _, err := Dial("127.0.0.1:1", filepath.Join(t.TempDir(), "api.token")); !errors.As(err, &e) || e.Hint == "" {
		t.Errorf("no token file: got %#v, want a hint to start the node", err)
	}
}

// A node that is killed leaves a caller who does not know what was done; that caller is told how to find out.
func TestNodeEndsBeforeItAnswers(t *testing.T) {
	for name, answer := range map[string]string{
		"no word":        "",
		"half an answer": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
	} {
		address := socket(t)
		ln, err := net.Listen("unix", strings.TrimPrefix(address, unixPrefix))
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- answerHalf(ln, answer) }()
		c, err := Dial(address, "")
		if err != nil {
			t.Fatal(err)
		}
		var e *Error
		if _, err := c.Publish(t.Context(), PublishRequest{Path: "/x"}); !errors.As(err, &e) || !strings.Contains(e.Hint, "sparsecast status") {
			t.Errorf("%s: got %#v, want a hint to look at the status", name, err)
		}
		if err := <-served; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		c.Close()
	}
}

// answerHalf takes one request, answers with just that text and is gone.
func answerHalf(ln net.Listener, text string) error {
	defer ln.Close()
	conn, err := ln.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
		return err
	}
	_, err = io.WriteString(conn, text)
	return err
}

func TestTokenGuardsLoopback(t *testing.T) {
	token := filepath.Join(t.TempDir(), "data", "api.token")
	c, _ := start(t, "127.0.0.1:0", token, &fake{})
	if _, err := c.Status(t.Context()); err != nil {
		t.Fatalf("with the token: %v", err)
	}
	if info, err := os.Stat(token); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("token file: %v, %v", info, err)
	}
	for _, wrong := range []string{"", "x", c.token + "x", strings.ToLower(c.token)} {
		bad := *c
		bad.token = wrong
		var e *Error
		if _, err := bad.Status(t.Context()); !errors.As(err, &e) || e.Code != http.StatusUnauthorized || e.Hint == "" {
			t.Errorf("token %q: got %#v", wrong, err)
		}
	}
	res, err := c.http.Get("http://localhost/healthz")
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("health without a token: got %d", res.StatusCode)
	}
}
