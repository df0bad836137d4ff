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
		{"POST", "/v1/publish", `{"path":"/x","paths":{"a":"/y"}}`, 400},
		{"POST", "/v1/publish", `{"paths":{}}`, 400},
		{"POST", "/v1/publish", `{"paths":{"":"/y"}}`, 400},
		{"POST", "/v1/publish", `{"paths":{"a":"/y","b":"z"}}`, 400},
		{"POST", "/v1/publish", `{"paths":{"a":""}}`, 400},
		{"POST", "/v1/publish", `{"paths":["/x"]}`, 400},
		{"POST", "/v1/publish", `{"paths":{` + manyPaths(maxStates+1) + `}}`, 400},
		{"POST", "/v1/pull", `{"timeout_seconds":-1}`, 400},
		{"POST", "/v1/pull", `{"timeout_seconds":1e300}`, 400},
		{"POST", "/v1/pull", `[]`, 400},
		{"POST", "/v1/pull", `{"exact":true}`, 400},
		{"PUT", "/v1/pin", `{}`, 400},
		{"PUT", "/v1/pin", ``, 400},
		{"PUT", "/v1/pin", `{"number":-1}`, 400},
		{"PUT", "/v1/pin", `{"number":1,"eproch":2}`, 400},
		{"POST", "/v1/pin", `{"number":1}`, 404},
		{"POST", "/v1/confirm", `{}`, 400},
		{"POST", "/v1/confirm", `{"number":"1"}`, 400},
		{"GET", "/v1/pull", ``, 404},
		{"POST", "/v1/status", ``, 404},
		{"GET", "/v1/status?run=other", ``, 404},
		{"GET", "/v1/status?rnu=default", ``, 400},
		{"GET", "/v1/status?run=a&run=b", ``, 400},
		{"GET", "/v1/status?run=%zz", ``, 400},
		{"POST", "/v1/publish?run=other", `{"path":"/x"}`, 404},
		{"POST", "/v1/pull?run=other", `{}`, 404},
		{"PUT", "/v1/pin?run=other", `{"number":1}`, 404},
		{"DELETE", "/v1/pin?run=other", ``, 404},
		{"GET", "/healthz?run=other", ``, 404},
		{"GET", "/", ``, 404},
	} {
		w := ask(b, c.method, c.route, c.body)
		var e Error
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != c.code || e.Message == "" || e.Hint == "" {
			t.Errorf("%s %s %.40s: got %d %s, want %d with error and hint", c.method, c.route, c.body, w.Code, w.Body, c.code)
		}
	}
}

func manyPaths(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("\"s%d\":\"/x\"", i)
	}
	return strings.Join(list, ",")
}

func TestPublishOfSeveralStates(t *testing.T) {
	var got map[string]string
	b := &fake{publish: func(_ context.Context, r PublishRequest) (PublishResult, error) {
		got = r.Paths
		return PublishResult{}, nil
	}}
	if w := ask(b, "POST", "/v1/publish", `{"paths":{"policy":"/p","draft":"/d"}}`); w.Code != 200 || len(got) != 2 || got["draft"] != "/d" {
		t.Errorf("got %d %s, %v", w.Code, w.Body, got)
	}
}

func TestHealth(t *testing.T) {
	for _, c := range []struct {
		status Status
		code   int
	}{
		{Status{Role: "trainer"}, 200},
		{Status{Role: "trainer", State: StateReady}, 200},
		{Status{Role: "trainer", State: StateError, Error: "another trainer has this key"}, 503},
		{Status{Role: "relay"}, 200},
		{Status{Role: "rollout", State: StateWaiting}, 503},
		{Status{Role: "rollout", State: StateFetching, Served: &VersionInfo{}}, 200},
	} {
		if w := ask(&fake{status: c.status}, "GET", "/healthz", ""); w.Code != c.code {
			t.Errorf("%+v: got %d, want %d", c.status, w.Code, c.code)
		} else if c.status.Error != "" && !strings.Contains(w.Body.String(), c.status.Error) {
			t.Errorf("%+v: the reason is missing in %s", c.status, w.Body)
		}
	}
}

// several is a node with a run that is healthy and one that is not.
type several struct{ fakes []*fake }

func (s several) Runs(context.Context) (list RunList) {
	for _, f := range s.fakes {
		list.Runs = append(list.Runs, RunInfo{Run: f.status.Run, State: f.status.State})
	}
	return list
}

func (s several) In(run string) (Run, error) {
	for _, f := range s.fakes {
		if f.status.Run == run {
			return f, nil
		}
	}
	return nil, NewError(http.StatusBadRequest, fmt.Errorf("run %q", run), "name one")
}

func TestSeveralRuns(t *testing.T) {
	b := several{[]*fake{
		{status: Status{Run: "good", Role: "trainer", State: StateReady}},
		{status: Status{Run: "bad one", Role: "trainer", State: StateError, Error: "ledger is damaged"}, pinned: PinResult{Problem: "p"}},
	}}
	for route, code := range map[string]int{
		"/healthz": 503, "/healthz?run=good": 200, "/healthz?run=bad+one": 503, "/v1/status": 400, "/v1/status?run=good": 200, "/v1/runs": 200,
	} {
		if w := ask(b, "GET", route, ""); w.Code != code {
			t.Errorf("%s: got %d %s, want %d", route, w.Code, w.Body, code)
		}
	}
	all := ask(b, "GET", "/healthz", "").Body.String()
	for _, want := range []string{`"healthy":true,"role":"trainer","run":"good"`, `"healthy":false,"role":"trainer","run":"bad one","state":"error","error":"ledger is damaged"`} {
		if !strings.Contains(all, want) {
			t.Errorf("health of all runs: got %s, want %s in it", all, want)
		}
	}
	c, _ := start(t, socket(t), "", b)
	if list, err := c.In("good").Runs(t.Context()); err != nil || len(list.Runs) != 2 || list.Runs[1].Run != "bad one" {
		t.Errorf("runs: got %+v, %v", list, err)
	}
	if s, err := c.In("bad one").Status(t.Context()); err != nil || s.Error != "ledger is damaged" {
		t.Errorf("status: got %+v, %v", s, err)
	}
	if r, err := c.In("bad one").Pinned(t.Context()); err != nil || r.Problem != "p" {
		t.Errorf("pinned: got %+v, %v", r, err)
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
	if e.Code != http.StatusNotFound || e.Hint != "look elsewhere" || e.Message != "publish: read: it was ended early" {
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
		for _, call := range []struct{ method, route string }{
			{"POST", "/v1/publish"}, {"POST", "/v1/pull"}, {"PUT", "/v1/pin"}, {"POST", "/v1/confirm"},
		} {
			if w := ask(b, call.method, call.route, body); w.Code >= 500 {
				t.Errorf("%s %q: %d %s", call.route, body, w.Code, w.Body)
			}
		}
	})
}
