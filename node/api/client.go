package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
)

// maxAnswer bounds what the client reads, in bytes; a status with many peers is the largest answer.
const maxAnswer = 16 << 20

// Client calls the API of one node. Its methods are safe for concurrent use.
type Client struct {
	addr  Address
	token string
	run   string // that calls are about, empty for the only one
	http  *http.Client
}

// Dial returns a client for the node at address; tokenFile is read on TCP only. Nothing is sent yet.
func Dial(address, tokenFile string) (*Client, error) {
	a, err := ParseAddress(address)
	if err != nil {
		return nil, err
	}
	c := &Client{addr: a}
	if a.Network == "tcp" {
		if c.token, err = readToken(tokenFile); err != nil {
			return nil, NewError(0, err, startHint)
		}
	}
	var d net.Dialer
	c.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, a.Network, a.Target)
		},
	}}
	return c, nil
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// In returns a client whose calls are about one run of the node. Without a name, as at first, they are about the only run
// of a node that has no other.
func (c *Client) In(run string) *Client {
	of := *c
	of.run = run
	return &of
}

// Runs asks in short how each run of the node does.
func (c *Client) Runs(ctx context.Context) (RunList, error) {
	return call[RunList](ctx, c.In(""), http.MethodGet, "/v1/runs", nil)
}

// Status asks the node what it holds, serves and is doing.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return call[Status](ctx, c, http.MethodGet, "/v1/status", nil)
}

// Publish asks a trainer's node to publish a checkpoint, and returns when its head was sent.
func (c *Client) Publish(ctx context.Context, r PublishRequest) (PublishResult, error) {
	return call[PublishResult](ctx, c, http.MethodPost, "/v1/publish", r)
}

// Pull returns when the version asked for is ready on the node's host.
func (c *Client) Pull(ctx context.Context, r PullRequest) (PullResult, error) {
	return call[PullResult](ctx, c, http.MethodPost, "/v1/pull", r)
}

// Pin makes the node serve one version and stay there; it returns at once.
func (c *Client) Pin(ctx context.Context, r VersionRequest) (PinResult, error) {
	return call[PinResult](ctx, c, http.MethodPut, "/v1/pin", r)
}

// Unpin makes the node follow the newest version again.
func (c *Client) Unpin(ctx context.Context) (PinResult, error) {
	return call[PinResult](ctx, c, http.MethodDelete, "/v1/pin", nil)
}

// Pinned asks what the node is pinned to.
func (c *Client) Pinned(ctx context.Context) (PinResult, error) {
	return call[PinResult](ctx, c, http.MethodGet, "/v1/pin", nil)
}

// Check has the node read all its copies of the weights and repair what is damaged. It returns when that is done.
func (c *Client) Check(ctx context.Context) (CheckResult, error) {
	return call[CheckResult](ctx, c, http.MethodPost, "/v1/check", nil)
}

// Confirm tells the node that the engine has loaded a version.
func (c *Client) Confirm(ctx context.Context, r VersionRequest) (ConfirmResult, error) {
	return call[ConfirmResult](ctx, c, http.MethodPost, "/v1/confirm", r)
}

func call[T any](ctx context.Context, c *Client, method, route string, body any) (answer T, err error) {
	req, err := c.request(ctx, method, route, body)
	if err != nil {
		return answer, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return answer, c.unreachable(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return answer, c.unreachable(err)
	}
	if res.StatusCode != http.StatusOK {
		return answer, remoteError(res.StatusCode, b)
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return answer, fmt.Errorf("read answer of %s: %w; is it a sparsecast node of this version?", c.addr, err)
	}
	return answer, nil
}

func (c *Client) request(ctx context.Context, method, route string, body any) (*http.Request, error) {
	var b []byte
	if body != nil {
		var err error
		if b, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
	}
	if c.run != "" {
		route += "?run=" + url.QueryEscape(c.run)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+route, bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

const (
	startHint = "is the node running? start it with: sparsecast node --config FILE"
	endedHint = "the node ended before it answered, see its log: when it runs again, sparsecast status tells whether the work was done"
)

// unreachable turns a failed call into an error that says what to do; a caller who left needs no hint.
func (c *Client) unreachable(err error) error {
	var hint string
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err // the rest is the URL, which nobody gave
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, os.ErrNotExist):
		hint = startHint
	case errors.Is(err, os.ErrPermission):
		hint = "run this as the user who runs the node"
	case isCutOff(err):
		return NewError(0, fmt.Errorf("call node at %s: %w", c.addr, err), endedHint)
	default:
		return fmt.Errorf("call node at %s: %w", c.addr, err)
	}
	return NewError(0, fmt.Errorf("no node answers at %s: %w", c.addr, err), hint)
}

func isCutOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// HasEnded tells whether a call failed because the node ended before it answered.
func HasEnded(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Code == http.StatusServiceUnavailable || e.Code == 0 && isCutOff(err))
}

// IsAbsent tells whether a call failed because nobody listens where the node should, as while it is not up yet.
func IsAbsent(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == 0 && (errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist))
}

// remoteError reads the error that the server wrote.
func remoteError(code int, body []byte) error {
	e := &Error{Code: code}
	if err := json.Unmarshal(body, e); err != nil || e.Message == "" {
		e.Message = fmt.Sprintf("node answered %d %s", code, http.StatusText(code))
	}
	return e
}
