package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func ask(b Backend, method, route, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	NewHandler(b, prometheus.NewRegistry()).ServeHTTP(w, httptest.NewRequest(method, route, strings.NewReader(body)))
	return w
}

func TestRefusedRequests(t *testing.T) {
	b := &fake{ // both would panic if they were called
		publish: nil,
		pull:    nil,
	}
	for _, c := range []struct {
		method, route, body string
		code                int
	}{
		{"POST", "/v1/publish", ``, 400},
		{"POST", "/v1/publish", ` `, 400},
		{"POST", "/v1/publish", `{"path":"/x","nmber":1}`, 400},
		{"POST", "/v1/publish", `{"path":"/x"} {}`, 400},
		{"POST", "/v1/publish", `{"path":"/x"} x`, 400},
		{"POST", "/v1/publish", `{"path":"/x"`, 400},
		{"POST", "/v1/publish", `{"path":"x"}`, 400},
		{"POST", "/v1/publish", `{}`, 400},
		{"POST", "/v1/publish", `{"path":"/x","number":-1}`, 400},
		{"POST", "/v1/publish", `{"path":"` + strings.Repeat("x", maxRequest) + `"}`, 413},
		{"POST", "/v1/pull", `{"timeout_seconds":-1}`, 400},
		{"POST", "/v1/pull", `{"timeout_seconds":1e300}`, 400},
		{"POST", "/v1/pull", `[]`, 400},
		{"GET", "/v1/pull", ``, 404},
		{"POST", "/v1/status", ``, 404},
		{"GET", "/", ``, 404},
	} {
		w := ask(b, c.method, c.route, c.body)
		var e Error
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != c.code || e.Message == "" || e.Hint == "" {
			t.Errorf("%s %s %.40s: got %d %s, want %d with error and hint", c.method, c.route, c.body, w.Code, w.Body, c.code)
		}
	}
}

func TestHealth(t *testing.T) {
	for _, c := range []struct {
		status Status
		code   int
	}{
		{Status{Role: "trainer"}, 200},
		{Status{Role: "relay"}, 200},
		{Status{Role: "rollout", State: StateWaiting}, 503},
		{Status{Role: "rollout", State: StateFetching, Served: &VersionInfo{}}, 200},
	} {
		if w := ask(&fake{status: c.status}, "GET", "/healthz", ""); w.Code != c.code {
			t.Errorf("%+v: got %d, want %d", c.status, w.Code, c.code)
		}
	}
}

func TestMetrics(t *testing.T) {
	g := prometheus.NewRegistry()
	n := prometheus.NewCounter(prometheus.CounterOpts{Name: "sparsecast_test_total", Help: "a test"})
	g.MustRegister(n)
	n.Add(3)
	w := httptest.NewRecorder()
	NewHandler(&fake{}, g).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "sparsecast_test_total 3") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestWrappedErrorKeepsItsHint(t *testing.T) {
	inner := NewError(http.StatusNotFound, fmt.Errorf("read: %w", context.Canceled), "look elsewhere")
	e := asError(fmt.Errorf("publish: %w", inner))
	if e.Code != http.StatusNotFound || e.Hint != "look elsewhere" || e.Message != "publish: read: context canceled" {
		t.Errorf("got %+v", e)
	}
	if e := asError(fmt.Errorf("x")); e.Code != http.StatusInternalServerError {
		t.Errorf("got %+v", e)
	}
}

// FuzzRequest checks that no body makes the server fail on its own account.
func FuzzRequest(f *testing.F) {
	f.Add(`{"path":"/x","number":3}`)
	f.Add(`{"timeout_seconds":0.5}`)
	b := &fake{
		publish: func(_ context.Context, r PublishRequest) (PublishResult, error) { return PublishResult{}, nil },
		pull:    func(context.Context, PullRequest) (PullResult, error) { return PullResult{}, nil },
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, route := range []string{"/v1/publish", "/v1/pull"} {
			if w := ask(b, "POST", route, body); w.Code >= 500 {
				t.Errorf("%s %q: %d %s", route, body, w.Code, w.Body)
			}
		}
	})
}
