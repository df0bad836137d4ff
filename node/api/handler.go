package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	maxRequest = 1 << 20          // bytes of a request's body
	bodyTime   = 10 * time.Second // for the whole body to come in
	answerTime = 30 * time.Second // for an answer that waits for nothing
	maxStates  = 64               // of one version
	maxWait    = 7 * 24 * 3600    // seconds that a pull may ask for
)

// NewHandler returns the routes of the API over b, with the metrics of g. It asks for no token: Listener.Serve does.
func NewHandler(b Backend, g prometheus.Gatherer) http.Handler {
	h := handler{b}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/runs", h.runs)
	mux.HandleFunc("GET /v1/status", h.in(h.status))
	mux.HandleFunc("GET /healthz", h.health)
	mux.Handle("GET /metrics", promhttp.HandlerFor(g, promhttp.HandlerOpts{}))
	mux.HandleFunc("POST /v1/publish", h.in(h.publish))
	mux.HandleFunc("POST /v1/pull", h.in(h.pull))
	mux.HandleFunc("GET /v1/pin", h.in(h.pinned))
	mux.HandleFunc("PUT /v1/pin", h.in(h.pin))
	mux.HandleFunc("DELETE /v1/pin", h.in(h.unpin))
	mux.HandleFunc("POST /v1/confirm", h.in(h.confirm))
	mux.HandleFunc("POST /v1/check", h.in(h.check))
	mux.HandleFunc("/", notFound)
	return mux
}

type handler struct{ backend Backend }

// in returns a handler of a call to the run that the query names, the only one of the node without a name.
func (h handler) in(call func(w http.ResponseWriter, r *http.Request, run Run)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name, err := runNamed(r)
		if err != nil {
			fail(w, err)
			return
		}
		run, err := h.backend.In(name)
		if err != nil {
			fail(w, err)
			return
		}
		call(w, r, run)
	}
}

func runNamed(r *http.Request) (string, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	for key, values := range query {
		if key != "run" || len(values) != 1 {
			err = fmt.Errorf("%q is no parameter, or given twice", key)
		}
	}
	if err != nil {
		return "", NewError(http.StatusBadRequest, fmt.Errorf("query: %w", err), "the only parameter is the name of a run, once, as ?run=default")
	}
	return query.Get("run"), nil
}

func (h handler) runs(w http.ResponseWriter, r *http.Request) {
	reply(w, http.StatusOK, h.backend.Runs(r.Context()))
}

func (handler) status(w http.ResponseWriter, r *http.Request, run Run) {
	reply(w, http.StatusOK, run.Status(r.Context()))
}

// health tells a supervisor whether to send requests here: of the run that is named, or else of all.
func (h handler) health(w http.ResponseWriter, r *http.Request) {
	name, err := runNamed(r)
	if err != nil {
		fail(w, err)
		return
	}
	names := []string{name}
	if name == "" {
		names = names[:0]
		for _, i := range h.backend.Runs(r.Context()).Runs {
			names = append(names, i.Run)
		}
	}
	all := Health{Healthy: true}
	for _, name := range names {
		run, err := h.backend.In(name)
		if err != nil {
			fail(w, err)
			return
		}
		one := healthOf(run.Status(r.Context()))
		all.Healthy, all.Role = all.Healthy && one.Healthy, one.Role
		all.Runs = append(all.Runs, one)
	}
	if len(all.Runs) == 1 {
		all = all.Runs[0]
	}
	code := http.StatusOK
	if !all.Healthy {
		code = http.StatusServiceUnavailable
	}
	reply(w, code, all)
}

// healthOf judges a run: a rollout host that serves no version is not healthy, nor is a trainer that publishes nothing
// any more.
func healthOf(s Status) Health {
	idle := s.Role == "rollout" && s.Served == nil || s.Role == "trainer" && s.State == StateError
	return Health{Healthy: !idle, Role: s.Role, Run: s.Run, State: s.State, Error: s.Error}
}

func (handler) publish(w http.ResponseWriter, r *http.Request, run Run) {
	var req PublishRequest
	if err := decode(w, r, &req); err != nil {
		fail(w, err)
		return
	}
	if err := checkPaths(req); err != nil {
		fail(w, err)
		return
	}
	res, err := run.Publish(r.Context(), req)
	if err != nil {
		fail(w, err)
		return
	}
	reply(w, http.StatusOK, res)
}

// checkPaths refuses a publish that names no checkpoint, or one in a way that is not clear.
func checkPaths(r PublishRequest) error {
	if r.Path == "" && len(r.Paths) == 0 && r.Full && r.Number == nil && !r.NewEpoch {
		return nil // of what is published already
	}
	if (r.Path == "") == (len(r.Paths) == 0) {
		return NewError(http.StatusBadRequest, errors.New("publish: want path or paths, one of the two"),
			`send {"path": "/ckpt"}, or {"paths": {"policy": "/ckpt/policy", "draft": "/ckpt/draft"}}`)
	}
	all := map[string]string{"": r.Path}
	if len(r.Paths) > 0 {
		all = r.Paths
	}
	if _, unnamed := r.Paths[""]; unnamed || len(r.Paths) > maxStates {
		return NewError(http.StatusBadRequest, fmt.Errorf("publish: %d states, or one without a name", len(r.Paths)),
			fmt.Sprintf("name each state in paths, at most %d; a single one goes into path", maxStates))
	}
	for _, path := range all {
		if !filepath.IsAbs(path) {
			return NewError(http.StatusBadRequest, fmt.Errorf("publish: path %q is not absolute", path),
				"give the whole path: the node has another working directory")
		}
	}
	return nil
}

func (handler) pull(w http.ResponseWriter, r *http.Request, run Run) {
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
	if req.Exact && req.Number == nil {
		fail(w, numberless("pull"))
		return
	}
	ctx := r.Context()
	if req.TimeoutSeconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(req.TimeoutSeconds*float64(time.Second)))
		defer cancel()
	}
	res, err := run.Pull(ctx, req)
	if err != nil {
		fail(w, err)
		return
	}
	reply(w, http.StatusOK, res)
}

func numberless(what string) error {
	return NewError(http.StatusBadRequest, fmt.Errorf("%s: no number", what), "name the version by its step, as {\"number\": 42}")
}

func (handler) pinned(w http.ResponseWriter, r *http.Request, run Run) {
	res, err := run.Pinned(r.Context())
	answer(w, res, err)
}

func (handler) pin(w http.ResponseWriter, r *http.Request, run Run) {
	req, err := decodeVersion(w, r, "pin")
	if err != nil {
		fail(w, err)
		return
	}
	res, err := run.Pin(r.Context(), req)
	answer(w, res, err)
}

func (handler) unpin(w http.ResponseWriter, r *http.Request, run Run) {
	res, err := run.Unpin(r.Context())
	answer(w, res, err)
}

func (handler) check(w http.ResponseWriter, r *http.Request, run Run) {
	res, err := run.Check(r.Context())
	answer(w, res, err)
}

func (handler) confirm(w http.ResponseWriter, r *http.Request, run Run) {
	req, err := decodeVersion(w, r, "confirm")
	if err != nil {
		fail(w, err)
		return
	}
	res, err := run.Confirm(r.Context(), req)
	answer(w, res, err)
}

func decodeVersion(w http.ResponseWriter, r *http.Request, what string) (req VersionRequest, err error) {
	if err := decode(w, r, &req); err != nil {
		return req, err
	}
	if req.Number == nil {
		return req, numberless(what)
	}
	return req, nil
}

// answer writes the result of a call, or its error.
func answer(w http.ResponseWriter, res any, err error) {
	if err != nil {
		fail(w, err)
		return
	}
	reply(w, http.StatusOK, res)
}

func notFound(w http.ResponseWriter, r *http.Request) {
	err := fmt.Errorf("no such route: %s %s", r.Method, r.URL.Path)
	hint := "there are GET /v1/runs, GET /v1/status, POST /v1/publish, POST /v1/pull, GET, PUT and DELETE /v1/pin, POST /v1/confirm, POST /v1/check, GET /healthz, GET /metrics"
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
		return badRequest(err, v)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return badRequest(cmp.Or(err, errors.New("more than one JSON value")), v)
	}
	// The answer may take long; a deadline left standing would end the request's context.
	if err := c.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// fieldsOf lists the fields that a request may have.
func fieldsOf(v any) (names []string) {
	t := reflect.TypeOf(v).Elem()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// badRequest says what is wrong with the body of a request, and what v, which it was to become, may hold.
func badRequest(err error, v any) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return NewError(http.StatusRequestEntityTooLarge, fmt.Errorf("request: %w", err), fmt.Sprintf("send at most %d bytes", maxRequest))
	case errors.Is(err, io.EOF):
		err = errors.New("no body")
	}
	return NewError(http.StatusBadRequest, fmt.Errorf("request: %w", err), fmt.Sprintf("send one JSON object; its fields are %s", strings.Join(fieldsOf(v), ", ")))
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
