package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/delta/safetensors"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// patience bounds waits for what must happen; it is long because machines are slow, not because anything takes long.
const patience = time.Minute

// testNode is a whole node in this process, on a real loopback socket.
type testNode struct {
	*Node
	*part // in the first of its runs
	stop  func()
}

// newConfig writes key and peer list of a node and returns its configuration.
func newConfig(t *testing.T, role mesh.Role, base string) (*Config, peer.ID) {
	t.Helper()
	// Socket paths are short, and t.TempDir is not.
	dir, err := os.MkdirTemp("", "node")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cfg := DefaultConfig()
	cfg.Role, cfg.Base, cfg.Peers, cfg.Listen = role, base, "open", []string{"/ip4/127.0.0.1/tcp/0"}
	cfg.Poll = 200 * time.Millisecond
	cfg.Resolve(dir)
	key, err := CreateKey(cfg.Key)
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return cfg, id
}

// startNode runs a node, changed by prepare, until the test ends or stop is called.
func startNode(t *testing.T, cfg *Config, prepare ...func(*Node)) *testNode {
	t.Helper()
	return startNodeOn(t, Machine{}, cfg, prepare...)
}

// startNodeOn is startNode on another machine.
func startNodeOn(t *testing.T, m Machine, cfg *Config, prepare ...func(*Node)) *testNode {
	t.Helper()
	log := zerolog.New(testWriter{t}).Level(zerolog.InfoLevel).With().Str("node", string(cfg.Role)).Logger()
	ctx, cancel := context.WithCancel(context.Background())
	n, err := NewOn(m, cfg, log)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	for _, f := range prepare {
		f(n)
	}
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("node ended with: %v", err)
		}
		if err := n.Close(); err != nil {
			t.Errorf("node closed with: %v", err)
		}
	}
	t.Cleanup(stop)
	return &testNode{Node: n, part: n.parts[0], stop: stop}
}

// testWriter sends log lines to the test.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// pairUp starts a trainer and a rollout that knows it, with a configuration that may be changed.
func pairUp(t *testing.T, base string, change ...func(c *Config)) (trainer, rollout *testNode) {
	t.Helper()
	cfg, id := newConfig(t, mesh.RoleTrainer, base)
	trainer = startNode(t, cfg)
	rolloutCfg := followerOf(t, trainer, id, base)
	for _, f := range change {
		f(rolloutCfg)
	}
	return trainer, startNode(t, rolloutCfg)
}

func followerOf(t *testing.T, trainer *testNode, id peer.ID, base string) *Config {
	t.Helper()
	cfg, _ := newConfig(t, mesh.RoleRollout, base)
	cfg.Publishers = []string{id.String()}
	cfg.Bootstrap = filepath.Join(filepath.Dir(cfg.Key), "bootstrap.txt")
	return relocate(t, cfg, trainer)
}

// relocate tells a node where the trainer is now.
func relocate(t *testing.T, cfg *Config, trainer *testNode) *Config {
	t.Helper()
	if err := os.WriteFile(cfg.Bootstrap, []byte(strings.Join(trainer.addrs(), "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func (n *testNode) mustPublish(t *testing.T, path string) api.PublishResult {
	t.Helper()
	r, err := n.Publish(t.Context(), api.PublishRequest{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// mustPull waits for a version and demands the weights of the checkpoint at path.
func (n *testNode) mustPull(t *testing.T, number uint64, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := n.Pull(ctx, api.PullRequest{Number: &number})
	if err != nil {
		t.Fatalf("pull %d: %v; status %+v", number, err, n.Status(ctx))
	}
	for _, place := range []string{r.Path, n.part.dir.Path("current")} {
		if got, want := rootOf(t, place), rootOf(t, path); got != want {
			t.Fatalf("version %d at %s has root %s, want %s", number, place, got, want)
		}
	}
}

func (n *testNode) waitFor(t *testing.T, what string, ok func(api.Status) bool) api.Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := n.board.waitFor(ctx, func(*board) bool { return true })
	for err == nil {
		s := n.Status(ctx)
		if ok(s) {
			return s
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("waiting for %s: status %+v", what, s)
		}
	}
	t.Fatal(err)
	return api.Status{}
}

// settle waits until a trainer has nothing left to do in the background.
func (n *testNode) settle(t *testing.T) {
	t.Helper()
	b := &n.role.(*trainer).background
	n.waitFor(t, "the background", func(api.Status) bool { return b.idle() })
}

func rootOf(t *testing.T, path string) delta.Root {
	t.Helper()
	c, err := delta.OpenCheckpoint(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	root, err := delta.RootOf(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// series writes n checkpoints of a small bf16 tensor, each with some elements moved by a step.
func series(t *testing.T, n int) []string {
	t.Helper()
	return seriesOf(t, n, 40000)
}

// seriesOf is series of a tensor of that many elements.
func seriesOf(t *testing.T, n int, elements int) []string {
	t.Helper()
	data := make([]byte, 2*elements)
	for i := range data {
		data[i] = byte(i*7 + i>>8)
	}
	var paths []string
	dir := t.TempDir()
	for step := range n {
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("step_%d.safetensors", step)))
		writeCheckpoint(t, paths[step], []safetensors.Tensor{{Name: "w", DType: "BF16", Shape: []uint64{uint64(elements)}, Size: 2 * int64(elements)}}, data)
		for i := step; i < elements; i += 97 {
			data[2*i]++
		}
	}
	return paths
}

func writeCheckpoint(t *testing.T, path string, tensors []safetensors.Tensor, data ...[]byte) {
	t.Helper()
	w, err := safetensors.Create(path, tensors, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range data {
		if err := w.WriteAt(i, b, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}

// damage flips a bit in the weights of a file, as failing hardware would: the file looks as before, and a node that looks at
// it meanwhile sees it either as it was or damaged.
func damage(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	try(t, err)
	b, err := os.ReadFile(path)
	try(t, err)
	b[len(b)-1001] ^= 0x10
	rotten := filepath.Join(t.TempDir(), "rotten")
	try(t, os.WriteFile(rotten, b, info.Mode()))
	try(t, os.Chtimes(rotten, info.ModTime(), info.ModTime()))
	try(t, os.Rename(rotten, path))
}
