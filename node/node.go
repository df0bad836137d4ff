package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
	"github.com/sparsecast/sparsecast/node/files"
	"golang.org/x/sync/errgroup"
)

// Node is one host: its disk, its connections and its API, and a part in each of its runs. New builds it, Run lives it,
// Close ends it.
type Node struct {
	machine Machine
	cfg     *Config
	log     zerolog.Logger
	key     crypto.PrivKey
	dir     *files.Dir // durable things
	place   *files.Dir // slots; dir unless slots_dir is set
	store   mesh.Store
	shelf   *shelf
	host    host.Host
	stats   *mesh.Stats
	members *mesh.Members
	mesh    *mesh.Mesh
	parts   []*part
	api     *api.Listener // nil without one
	metrics *prometheus.Registry
	started time.Time
	closers []func() error
}

// New takes the data directory and listens. Nothing runs yet.
func New(cfg *Config, log zerolog.Logger) (*Node, error) { return NewOn(Machine{}, cfg, log) }

// NewOn is New on another machine than this.
func NewOn(m Machine, cfg *Config, log zerolog.Logger) (*Node, error) {
	n := &Node{machine: m.orThis(), cfg: cfg, log: log, stats: &mesh.Stats{}, started: time.Now()}
	if err := n.build(); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Node) build() error {
	var err error
	if n.key, err = loadKey(n.machine.FS, n.cfg.Key); err != nil {
		return err
	}
	if err := n.openHome(); err != nil {
		return err
	}
	if err := n.listen(); err != nil {
		return err
	}
	if n.store, err = mesh.NewDiskStore(n.dir); err != nil {
		return fmt.Errorf("open block store: %w", err)
	}
	if err := n.connect(); err != nil {
		return err
	}
	n.shelf = newShelf(library{store: n.store}, n.mesh.Wanted)
	if err := n.join(); err != nil {
		return err
	}
	n.metrics = newMetrics(n)
	return nil
}

// listen opens the local API.
func (n *Node) listen() (err error) {
	if n.machine.NoAPI {
		return nil
	}
	if n.api, err = api.Listen(n.cfg.API, n.cfg.TokenFile()); err != nil {
		return err
	}
	n.onClose(func() error { _ = n.api.Close(); return nil }) // Run has closed it already, unless it never ran
	return nil
}

func (n *Node) onClose(f func() error) { n.closers = append(n.closers, f) }

// connect builds the host and the mesh from the configuration.
func (n *Node) connect() error {
	mesh.BridgeLogs(n.log.With().Str("part", "libp2p").Logger())
	var err error
	if n.members, err = membersOf(n.machine.FS, n.cfg); err != nil {
		return err
	}
	meshCfg, err := n.meshConfig() // before anything listens: most mistakes are in what it reads
	if err != nil {
		return err
	}
	hostCfg := mesh.HostConfig{Key: n.key, Members: n.members, Prefer: n.cfg.Prefer}
	if hostCfg.Listen, err = n.cfg.ListenAddrs(); err != nil {
		return err
	}
	if hostCfg.Announce, err = n.cfg.AnnounceAddrs(); err != nil {
		return err
	}
	if hostCfg.TrustedNets, err = n.cfg.Networks(); err != nil {
		return err
	}
	if n.host, err = n.machine.NewHost(hostCfg, n.stats); err != nil {
		return err
	}
	n.onClose(n.host.Close)
	meshLog := n.log.With().Str("part", "mesh").Logger()
	n.mesh, err = mesh.New(n.host, meshCfg, n.store, n.stats, meshLog)
	return err
}

// join takes part in every run that it can. One that fails leaves the others be, but what it needs of the store is not
// known then, so nothing is removed. When none is left the node fails.
func (n *Node) join() error {
	var errs []error
	for _, cfg := range n.cfg.AllRuns() {
		p, err := n.newPart(cfg)
		if err != nil {
			errs = append(errs, err)
			n.shelf.hide(cfg.Name)
		} else {
			head, edges := p.offer()
			n.shelf.resume(cfg.Name, &memo[stockKept]{note: shelfNote, dir: p.dir, log: p.log}, head, edges)
		}
		n.parts = append(n.parts, p)
	}
	if len(errs) == len(n.parts) {
		return errors.Join(errs...)
	}
	return nil
}

func (n *Node) meshConfig() (mesh.Config, error) {
	cfg := mesh.Config{Role: n.cfg.Role, Cluster: n.cfg.Cluster, Members: n.members, PollEvery: n.cfg.Poll, Now: n.machine.Now}
	var err error
	if n.cfg.Bootstrap != "" {
		cfg.Bootstrap, err = loadBootstrap(n.machine.FS, n.cfg.Bootstrap)
	}
	return cfg, err
}

// Run lives until ctx ends or a part of the node fails beyond repair.
func (n *Node) Run(ctx context.Context) error {
	n.log.Info().Str("id", n.host.ID().String()).Str("role", string(n.cfg.Role)).Strs("runs", n.runNames()).
		Strs("addrs", n.addrs()).Str("api", n.cfg.API).Msg("node up")
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return n.mesh.Run(ctx) })
	g.Go(func() error { return n.live(ctx) })
	g.Go(func() error { return n.watchLists(ctx) })
	if n.api != nil {
		g.Go(func() error { return n.api.Serve(ctx, api.NewHandler(n, n.metrics)) })
	}
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	n.log.Info().Msg("node down")
	return err
}

// live lives all runs. One that fails leaves the others be; when none is left the node has failed.
func (n *Node) live(ctx context.Context) error {
	errs := make([]error, len(n.parts))
	var all sync.WaitGroup
	for i, p := range n.parts {
		all.Go(func() { errs[i] = p.live(ctx) })
	}
	all.Wait()
	if slices.Contains(errs, nil) {
		return nil
	}
	return errors.Join(errs...)
}

// runNames returns the names of the runs of this node.
func (n *Node) runNames() []string {
	names := make([]string, len(n.parts))
	for i, p := range n.parts {
		names[i] = p.settings.Name
	}
	return names
}

// Close gives back what New took.
func (n *Node) Close() error {
	var errs []error
	for i := len(n.closers) - 1; i >= 0; i-- {
		errs = append(errs, n.closers[i]())
	}
	n.closers = nil
	return errors.Join(errs...)
}
