package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	maxRequest = 1 << 20          // bytes of a request's body
	bodyTime   = 10 * time.Second // for the whole body to come in
	answerTime = 30 * time.Second // for an answer that waits for nothing
	maxWait    = 7 * 24 * 3600    // seconds that a pull may ask for
)

// NewHandler returns the routes of the API over b, with the metrics of g. It asks for no token: Listener.Serve does.
func NewHandler(b Backend, g prometheus.Gatherer) http.Handler {
	h := handler{b}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", h.status)
	mux.HandleFunc("GET /healthz", h.health)
	mux.Handle("GET /metrics", promhttp.HandlerFor(g, promhttp.HandlerOpts{}))
	mux.HandleFunc("POST /v1/publish", h.publish)
	mux.HandleFunc("POST /v1/pull", h.pull)
	mux.HandleFunc("/", notFound)
	return mux
}

type handler struct{ backend Backend }

func (h handler) status(w http.ResponseWriter, r *http.Request) {
	reply(w, http.StatusOK, h.backend.Status(r.Context()))
}

// health tells a supervisor whether to send requests here: a rollout host that serves no version is not healthy.
func (h handler) health(w http.ResponseWriter, r *http.Request) {
	s := h.backend.Status(r.Context())
	code := http.StatusOK
	if s.Role == "rollout" && s.Served == nil {
		code = http.StatusServiceUnavailable
	}
	reply(w, code, map[string]string{"role": s.Role, "state": s.State})
}

func (h handler) publish(w http.ResponseWriter, r *http.Request) {
	var req PublishRequest
	if err := decode(w, r, &req); err != nil {
		fail(w, err)
		return
	}
	if !filepath.IsAbs(req.Path) {
		err := fmt.Errorf("publish: path %q is not absolute", req.Path)
		fail(w, NewError(http.StatusBadRequest, err, "give the whole path: the node has another working directory"))
		return
	}
	res, err := h.backend.Publish(r.Context(), req)
	if err != nil {
		fail(w, err)
		return
	}
	reply(w, http.StatusOK, res)
}

func (h handler) pull(w http.ResponseWriter, r *http.Request) {
	var req PullRequest
	if err := decode(w, r, &req); err != nil {
		fail(w, err)
		return
	}
	if req.TimeoutSeconds < 0 || req.TimeoutSeconds > maxWait {
		err := fmt.Errorf("pull: timeout of %g seconds", req.TimeoutSeconds)
		fail(w, NewError(http.StatusBadRequest, err, fmt.Sprintf("want 0 (no limit) to %d seconds", maxWait)))
		return
	}
	ctx := r.Context()
	if req.TimeoutSeconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(req.TimeoutSeconds*float64(time.Second)))
		defer cancel()
	}
	res, err := h.backend.Pull(ctx, req)
	if err != nil {
		fail(w, err)
		return
	}
	reply(w, http.StatusOK, res)
}

func notFound(w http.ResponseWriter, r *http.Request) {
	err := fmt.Errorf("no such route: %s %s", r.Method, r.URL.Path)
	hint := "there are GET /v1/status, POST /v1/publish, POST /v1/pull, GET /healthz, GET /metrics"
	fail(w, NewError(http.StatusNotFound, err, hint))
}

// decode reads one JSON object of bounded size, in bounded time, into v.
func decode(w http.ResponseWriter, r *http.Request, v any) error {
	c := http.NewResponseController(w)
	if err := c.SetReadDeadline(time.Now().Add(bodyTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return badRequest(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return badRequest(cmp.Or(err, errors.New("more than one JSON value")))
	}
	// The answer may take long; a deadline left standing would end the request's context.
	if err := c.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

func badRequest(err error) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return NewError(http.StatusRequestEntityTooLarge, fmt.Errorf("request: %w", err), fmt.Sprintf("send at most %d bytes", maxRequest))
	case errors.Is(err, io.EOF):
		err = errors.New("no body")
	}
	return NewError(http.StatusBadRequest, fmt.Errorf("request: %w", err), "send one JSON object with the documented fields")
}

func reply(w http.ResponseWriter, code int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, `{"error":"encode answer"}`, http.StatusInternalServerError)
		return
	}
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // unsupported only by test recorders
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(append(b, '\n')) // the caller has gone if this fails
}

func fail(w http.ResponseWriter, err error) {
	e := asError(err)
	reply(w, e.Code, e)
}
