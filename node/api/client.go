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
	"os"
	"syscall"
)

// maxAnswer bounds what the client reads, in bytes; a status with many peers is the largest answer.
const maxAnswer = 16 << 20

// Client calls the API of one node. Its methods are safe for concurrent use.
type Client struct {
	addr  Address
	token string
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
		return answer, fmt.Errorf("read answer of %s: %w", c.addr, err)
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
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+route, bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

const startHint = "is the node running? start it with: sparsecast node --config FILE"

// unreachable turns a failed dial into an error that says what to do; other failures keep their own words.
func (c *Client) unreachable(err error) error {
	var hint string
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, os.ErrNotExist):
		hint = startHint
	case errors.Is(err, os.ErrPermission):
		hint = "run this as the user who runs the node"
	default:
		return fmt.Errorf("call node at %s: %w", c.addr, err)
	}
	return NewError(0, fmt.Errorf("no node answers at %s: %w", c.addr, errors.Unwrap(err)), hint)
}

// remoteError reads the error that the server wrote.
func remoteError(code int, body []byte) error {
	e := &Error{Code: code}
	if err := json.Unmarshal(body, e); err != nil || e.Message == "" {
		e.Message = fmt.Sprintf("node answered %d %s", code, http.StatusText(code))
	}
	return e
}
