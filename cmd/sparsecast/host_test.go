package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// host is one machine of a fleet: its files, and its node's process while that runs.
type host struct {
	t         *testing.T
	name      string
	role      mesh.Role
	id        peer.ID
	port      int
	dir, data string
	base      string  // checkpoint, empty for none
	keep      int     // versions whose deltas stay on offer, 0 for the default
	keepBytes int     // coded bytes on offer, 0 for no limit
	bootstrap []*host // written to a file of its own
	members   []*host // who may connect; nil for the whole fleet

	client *api.Client
	cmd    *exec.Cmd
	stdin  io.Closer     // the node stops when it is closed, also by the death of the test
	exited chan struct{} // nil before the first start
	served *api.VersionInfo
}

func (h *host) addr() string {
	return fmt.Sprintf("/ip4/127.0.0.1/tcp/%d/p2p/%s", h.port, h.id)
}

func (h *host) log() string     { return filepath.Join(h.dir, "node.log") }
func (h *host) config() string  { return filepath.Join(h.dir, "node.yaml") }
func (h *host) socket() string  { return filepath.Join(h.dir, "api.sock") }
func (h *host) current() string { return filepath.Join(h.data, "current") }

// configure writes the files of the node.
func (h *host) configure(publisher peer.ID) {
	h.t.Helper()
	var peers, bootstrap strings.Builder
	for _, m := range h.members {
		fmt.Fprintf(&peers, "%s # %s\n", m.id, m.name)
	}
	for _, b := range h.bootstrap {
		fmt.Fprintln(&bootstrap, b.addr())
	}
	yaml := fmt.Sprintf(`role: %s
data: %s
key: node.key
listen: [/ip4/127.0.0.1/tcp/%d]
peers: peers.txt
bootstrap: bootstrap.txt
publishers: [%s]
base: %q
api: unix:api.sock
poll: 200ms
log: {level: debug, format: json}
`, h.role, h.data, h.port, publisher, h.base)
	if h.keep > 0 {
		yaml += fmt.Sprintf("keep: %d\n", h.keep)
	}
	if h.keepBytes > 0 {
		yaml += fmt.Sprintf("keep_bytes: %d\n", h.keepBytes)
	}
	for name, text := range map[string]string{"peers.txt": peers.String(), "bootstrap.txt": bootstrap.String(), "node.yaml": yaml} {
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
			h.t.Fatal(err)
		}
	}
}

// start runs the node, again after a kill, and waits until it answers.
func (h *host) start() {
	h.t.Helper()
	h.launch()
	h.answers()
}

// launch runs the node and waits for nothing.
func (h *host) launch() {
	h.t.Helper()
	log, err := os.OpenFile(h.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		h.t.Fatal(err)
	}
	defer log.Close() // the node has its own
	h.cmd = exec.Command("sparsecast", "node", "--config", h.config(), "--stop-on-eof")
	h.cmd.Stdout, h.cmd.Stderr = log, log
	if h.stdin, err = h.cmd.StdinPipe(); err != nil {
		h.t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		h.t.Fatalf("start %s: %v", h.name, err)
	}
	h.exited = make(chan struct{})
	go func() { // ends with the node, which stop or kill wait for
		_ = h.cmd.Wait()
		close(h.exited)
	}()
	if h.client, err = api.Dial("unix:"+h.socket(), ""); err != nil {
		h.t.Fatal(err)
	}
}

// answers waits until a node that was launched has read what is on its disk.
func (h *host) answers() {
	h.t.Helper()
	h.await("answer", func(s api.Status) bool { return s.State != api.StateStarting })
}

func (h *host) running() bool {
	if h.exited == nil {
		return false
	}
	select {
	case <-h.exited:
		return false
	default:
		return true
	}
}

// kill ends the node as a crash does, with nothing flushed and nobody told.
func (h *host) kill() {
	h.t.Helper()
	if err := h.cmd.Process.Kill(); err != nil {
		h.t.Fatal(err)
	}
	<-h.exited
	h.client.Close()
}

// stop asks the node to end, which must succeed.
func (h *host) stop() {
	h.t.Helper()
	h.stdin.Close()
	select {
	case <-h.exited:
	case <-time.After(patience):
		h.t.Errorf("%s did not stop", h.name)
		h.kill()
	}
	h.client.Close()
	if !h.cmd.ProcessState.Success() {
		h.t.Errorf("%s ended with %s", h.name, h.cmd.ProcessState)
	}
}

// status asks the node, and wants what it serves never to be older than what it said before, also over a restart.
func (h *host) status(ctx context.Context) (api.Status, error) {
	h.t.Helper()
	s, err := h.client.Status(ctx)
	if err != nil || s.Served == nil {
		return s, err
	}
	if old := h.served; old != nil && (s.Served.Epoch < old.Epoch || s.Served.Epoch == old.Epoch && s.Served.Number < old.Number) {
		h.t.Errorf("%s went back from version %d of %d to %d of %d", h.name, old.Number, old.Epoch, s.Served.Number, s.Served.Epoch)
	}
	h.served = s.Served
	return s, nil
}

// await asks the node until ok, and fails when it ends or patience does.
func (h *host) await(what string, ok func(api.Status) bool) api.Status {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	for {
		s, err := h.status(ctx)
		if err == nil && ok(s) {
			return s
		}
		select {
		case <-h.exited:
			h.t.Fatalf("%s ended before it could %s", h.name, what)
		case <-ctx.Done():
			h.t.Fatalf("%s did not %s: state %s %s, %v", h.name, what, s.State, s.Error, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// now is the status of a node that answers.
func (h *host) now() api.Status {
	h.t.Helper()
	return h.await("answer", func(api.Status) bool { return true })
}

// newest is the newest version that the node knows, of which there must be one or be one soon.
func (h *host) newest() *api.VersionInfo {
	h.t.Helper()
	return h.await("know a version", func(s api.Status) bool { return s.Latest != nil }).Latest
}

// harmful are the counters that no honest fleet moves.
var harmful = []string{"chunks_tampered", "heads_forged", "heads_conflicting", "heads_early", "messages_malformed", "peers_banned"}

func (h *host) checkCounters() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := h.status(ctx)
	if err != nil {
		h.t.Errorf("%s: %v", h.name, err)
	}
	for _, name := range harmful {
		if n := s.Counters[name]; n != 0 {
			h.t.Errorf("%s: %s is %d in an honest fleet", h.name, name, n)
		}
	}
}

// checkLog wants no node to have panicked or raced, also where nobody saw its exit code.
func (h *host) checkLog() {
	b, err := os.ReadFile(h.log())
	if err != nil {
		return // never started
	}
	for _, crash := range []string{"\npanic: ", "\nfatal error: ", "DATA RACE"} {
		if at := bytes.Index(b, []byte(crash)); at >= 0 {
			h.t.Errorf("%s crashed:\n%s", h.name, b[at:min(len(b), at+4000)])
		}
	}
}

// lastWords returns the end of the node's log.
func (h *host) lastWords() string {
	b, err := os.ReadFile(h.log())
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-20):], []byte("\n")))
}
