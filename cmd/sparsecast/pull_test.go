package main

import (
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// answering stands in for a node whose API is h, and returns its address.
func answering(t *testing.T, h http.Handler) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "api.sock")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	t.Cleanup(func() { server.Close(); <-ended })
	return "unix:" + socket
}

// A pull that is told to stop says what it waited for, and nothing of how it asks.
func TestPullEndsCleanly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signal syscall.Signal
		args   []string
		want   string
	}{
		{syscall.SIGTERM, []string{"--at-least", "99"}, "sparsecast: error: stopped waiting for 99: terminated signal received\n"},
		{syscall.SIGINT, nil, "sparsecast: error: stopped waiting for the newest version: interrupt signal received\n"},
		{
			syscall.SIGTERM, []string{"--version", "4", "--timeout", "1h"},
			"pinned to 4: the node stays there until sparsecast unpin\nsparsecast: error: stopped waiting for 4: terminated signal received\n",
		},
	} {
		asked := make(chan struct{})
		address := answering(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(asked)
			<-r.Context().Done()
		}))
		cmd := exec.CommandContext(t.Context(), "sparsecast", append([]string{"pull", "--api", address}, c.args...)...)
		var said strings.Builder
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-asked
		_ = cmd.Process.Signal(c.signal)
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitError {
			t.Errorf("ended with %v", err)
		}
		if said.String() != c.want {
			t.Errorf("%v: said %q, want %q", c.signal, said.String(), c.want)
		}
	}
}

// A pull that runs out of time says what stands in the way of its node.
func TestPullTellsProblems(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/pull", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusGatewayTimeout)
		_, _ = w.Write([]byte(`{"error": "version 99 is not ready here", "hint": "wait longer"}`))
	})
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"state": "ready", "problems": ["base /x is another one", "no peer is reached"]}`))
	})
	cmd := exec.CommandContext(t.Context(), "sparsecast", "pull", "--api", answering(t, mux), "--at-least", "99", "--timeout", "1m")
	out, _ := cmd.CombinedOutput()
	want := "problem: base /x is another one\nproblem: no peer is reached\nsparsecast: error: version 99 is not ready here\nhint: wait longer\n"
	if string(out) != want || cmd.ProcessState.ExitCode() != exitTimeout {
		t.Errorf("said %q, %v; want %q", out, cmd.ProcessState, want)
	}
}

// A pull whose node ends, killed or as it should, asks again until it is up, with a timeout or without.
func TestPullOutlivesItsNode(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--timeout", "10m"}} {
		asked := make(chan int, 4)
		calls := 0
		address := answering(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/pull" {
				return
			}
			calls++
			asked <- calls
			switch calls {
			case 1:
				panic(http.ErrAbortHandler) // cut off, as when it is killed
			case 2:
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = w.Write([]byte(`{"error": "it was ended early"}`))
			default:
				_, _ = w.Write([]byte(`{"path": "/data/slots/a"}`))
			}
		}))
		out, err := exec.CommandContext(t.Context(), "sparsecast", append([]string{"pull", "--api", address}, args...)...).Output()
		if string(out) != "/data/slots/a\n" || len(asked) != 3 {
			t.Errorf("%v: printed %q, %v, after %d calls", args, out, err, len(asked))
		}
	}
}

// A publish that takes longer than its user will wait ends, and says how to go on. The node hears that nobody waits.
func TestPublishGivesUp(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	address := answering(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server looks whether the caller is there
		<-r.Context().Done()
		close(left)
	}))
	cmd := exec.CommandContext(t.Context(), "sparsecast", "publish", "/ckpt", "--api", address, "--timeout", "100ms")
	out, _ := cmd.CombinedOutput()
	if !strings.Contains(string(out), "not published within 100ms") || !strings.Contains(string(out), "hint: sparsecast status") ||
		cmd.ProcessState.ExitCode() != exitTimeout {
		t.Errorf("said %q, %v", out, cmd.ProcessState)
	}
	<-left
}
