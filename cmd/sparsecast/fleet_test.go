package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node"
	"github.com/sparsecast/sparsecast/node/api"
)

// fleet is a run on this machine: nodes in processes of their own, with files as an operator would write them.
type fleet struct {
	t       *testing.T
	dir     string
	base    string
	trainer *host
	hosts   []*host
}

// newFleet prepares a trainer and rollouts that bootstrap from it. Nothing is started.
func newFleet(t *testing.T, base string, rollouts int) *fleet {
	t.Helper()
	dir, err := os.MkdirTemp("", "fleet-") // shorter than t.TempDir: a socket's path has its limits
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, dir: dir, base: base}
	t.Cleanup(f.end)
	f.trainer = f.add("trainer", mesh.RoleTrainer)
	for i := range rollouts {
		f.add(fmt.Sprintf("rollout-%d", i+1), mesh.RoleRollout, f.trainer)
	}
	return f
}

// add prepares a host that bootstraps from others. It may be changed until it is started.
func (f *fleet) add(name string, role mesh.Role, bootstrap ...*host) *host {
	f.t.Helper()
	h := &host{t: f.t, name: name, role: role, dir: filepath.Join(f.dir, name), base: f.base, bootstrap: bootstrap, port: freePort(f.t)}
	key, err := node.CreateKey(filepath.Join(h.dir, "node.key"))
	if err != nil {
		f.t.Fatal(err)
	}
	if h.id, err = peer.IDFromPrivateKey(key); err != nil {
		f.t.Fatal(err)
	}
	h.data = filepath.Join(h.dir, "data")
	f.hosts = append(f.hosts, h)
	return h
}

// rollouts are the hosts that follow, in the order in which they were added.
func (f *fleet) rollouts() []*host {
	return slices.DeleteFunc(slices.Clone(f.hosts), func(h *host) bool { return h.role != mesh.RoleRollout })
}

// start starts hosts, all of the fleet when none is named, and waits until they answer.
func (f *fleet) start(hosts ...*host) {
	f.t.Helper()
	if len(hosts) == 0 {
		hosts = f.hosts
	}
	for _, h := range hosts {
		if h.members == nil {
			h.members = f.hosts
		}
		h.configure(f.trainer.id)
		h.start()
	}
}

// publish makes the checkpoint at path the newest version.
func (f *fleet) publish(path string) api.PublishResult {
	f.t.Helper()
	r, err := f.trainer.client.Publish(f.t.Context(), api.PublishRequest{Path: path})
	if err != nil {
		f.t.Fatalf("publish %s: %v", filepath.Base(path), err)
	}
	return r
}

// follow waits until hosts serve v, and wants the tensors of path there.
func (f *fleet) follow(v api.VersionInfo, path string, hosts ...*host) {
	f.t.Helper()
	for _, h := range hosts {
		h.await(fmt.Sprintf("serve version %d", v.Number), func(s api.Status) bool {
			return s.Served != nil && s.Served.Epoch == v.Epoch && s.Served.Number >= v.Number
		})
		f.same(path, h)
	}
}

// same wants the tensors of path in what each host serves.
func (f *fleet) same(path string, hosts ...*host) {
	f.t.Helper()
	want := digest(f.t, path)
	for _, h := range hosts {
		if got := digest(f.t, h.current()); got != want {
			f.t.Fatalf("%s: the tensors under current are not those of %s", h.name, filepath.Base(path))
		}
	}
}

// end stops everything, shows the logs of a fleet that failed, and wants counters of damage and forgery at zero.
func (f *fleet) end() {
	for _, h := range slices.Backward(f.hosts) {
		if h.running() {
			h.checkCounters()
			h.stop()
		}
	}
	for _, h := range f.hosts {
		h.checkLog()
		if f.t.Failed() {
			f.t.Logf("%s ended its log with:\n%s", h.name, h.lastWords())
		}
	}
	os.RemoveAll(f.dir)
}

func digest(t *testing.T, path string) string {
	t.Helper()
	d, err := digestOf(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// steps makes a small policy and updates that change a few percent of it.
func steps(t *testing.T, size int64, updates int) []string {
	t.Helper()
	return stepsAt(t, size, updates, 2e-6)
}

// denseSteps makes updates that change nearly everything, and so take longer on their way.
func denseSteps(t *testing.T, size int64, updates int) []string {
	t.Helper()
	return stepsAt(t, size, updates, 1e-3)
}

func stepsAt(t *testing.T, size int64, updates int, lr float64) []string {
	t.Helper()
	paths, err := policySteps(t.TempDir(), size, updates, lr)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// freePort finds a port below those that systems give to outgoing connections, so that it is still free when its
// host starts again.
func freePort(t *testing.T) int {
	t.Helper()
	for range 1000 {
		port := 10000 + rand.IntN(20000)
		ln, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			ln.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}
