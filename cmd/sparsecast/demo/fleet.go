package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/sparsecast/sparsecast/node"
	"github.com/sparsecast/sparsecast/node/api"
)

// fleet is a trainer and its rollouts.
type fleet struct {
	dir      string
	trainer  *process
	rollouts []*process
}

// settle is how long nodes get to find each other before the first publish. They would find each other later too.
const settle = 20 * time.Second

// startFleet writes keys, peer lists and configurations, and starts every node.
func startFleet(ctx context.Context, dir, base string, rollouts int) (*fleet, error) {
	f := &fleet{dir: dir}
	var err error
	if f.trainer, err = newProcess(dir, "trainer"); err != nil {
		return nil, err
	}
	for i := range rollouts {
		p, err := newProcess(dir, fmt.Sprintf("rollout-%d", i+1))
		if err != nil {
			return nil, err
		}
		f.rollouts = append(f.rollouts, p)
	}
	if err := f.configure(base); err != nil {
		return nil, err
	}
	if err := f.start(ctx); err != nil {
		return nil, errors.Join(err, f.stop())
	}
	return f, nil
}

func newProcess(dir, name string) (*process, error) {
	p := &process{name: name, dir: filepath.Join(dir, name)}
	key, err := node.CreateKey(filepath.Join(p.dir, "node.key"))
	if err != nil {
		return nil, err
	}
	id, err := peer.IDFromPrivateKey(key)
	p.id = id.String()
	return p, err
}

func (f *fleet) all() []*process { return append([]*process{f.trainer}, f.rollouts...) }

func (f *fleet) configure(base string) error {
	var peers strings.Builder
	for _, p := range f.all() {
		fmt.Fprintf(&peers, "%s # %s\n", p.id, p.name)
	}
	if err := os.WriteFile(filepath.Join(f.dir, "peers.txt"), []byte(peers.String()), 0o600); err != nil {
		return err
	}
	for _, p := range f.all() {
		role := "rollout"
		if p == f.trainer {
			role = "trainer"
		}
		if err := os.WriteFile(p.config(), []byte(f.configOf(role, base)), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// configOf is what an operator would write for a node. Strings are quoted as YAML takes them.
func (f *fleet) configOf(role, base string) string {
	c := fmt.Sprintf(`role: %s
run: demo
cluster: local
data: data
key: node.key
listen: [/ip4/127.0.0.1/tcp/0]
peers: ../peers.txt
publishers: [%s]
base: %q
api: unix:api.sock
log: {level: info, format: json}
`, role, f.trainer.id, base)
	if role == "rollout" {
		c += "bootstrap: bootstrap.txt\n"
	}
	return c
}

// start runs the trainer first: the bootstrap files of the others name its address.
func (f *fleet) start(ctx context.Context) error {
	if err := f.trainer.start(ctx); err != nil {
		return err
	}
	if err := f.trainer.await(ctx, "publish the base", isReady); err != nil {
		return err
	}
	s, err := f.trainer.client.Status(ctx)
	if err != nil {
		return err
	}
	bootstrap := "# where to start from; the nodes tell each other about the rest\n" + strings.Join(s.Addrs, "\n") + "\n"
	for _, p := range f.rollouts {
		if err := os.WriteFile(filepath.Join(p.dir, "bootstrap.txt"), []byte(bootstrap), 0o600); err != nil {
			return err
		}
		if err := p.start(ctx); err != nil {
			return err
		}
	}
	return f.meet(ctx)
}

func isReady(s api.Status) bool { return s.State == api.StateReady }

// meet waits until every rollout has the base and knows every other node.
func (f *fleet) meet(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	for _, p := range f.rollouts {
		if err := p.await(ctx, "have the base", isReady); err != nil {
			return err
		}
		err := p.await(wait, "meet the others", func(s api.Status) bool { return len(s.Peers) >= len(f.rollouts) })
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
	fmt.Printf("%d nodes up: one trainer, %d rollouts, each a process, in %s\n", len(f.all()), len(f.rollouts), f.dir)
	return nil
}

// stop ends the rollouts first, so that none of them complains about the trainer.
func (f *fleet) stop() error {
	var errs []error
	for _, p := range append(f.rollouts[:len(f.rollouts):len(f.rollouts)], f.trainer) {
		errs = append(errs, p.stop())
	}
	return errors.Join(errs...)
}

// lastWords returns the ends of the logs of nodes that have died.
func (f *fleet) lastWords() string {
	var words string
	for _, p := range f.all() {
		select {
		case <-p.exited:
			words += "\n" + p.name + " has ended" + p.lastWords()
		default:
		}
	}
	return words
}
