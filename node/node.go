package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
	"github.com/sparsecast/sparsecast/node/files"
	"golang.org/x/sync/errgroup"
)

// role is what a node does in its run.
type role interface {
	run(ctx context.Context) error
	publish(ctx context.Context, r api.PublishRequest) (api.PublishResult, error)
}

// Node is one host's part in a run. New builds it, Run lives it, Close ends it.
type Node struct {
	cfg     *Config
	log     zerolog.Logger
	key     crypto.PrivKey
	host    host.Host
	stats   *mesh.Stats
	members *mesh.Members
	mesh    *mesh.Mesh
	board   *board
	role    role
	api     *api.Listener
	metrics *prometheus.Registry
	started time.Time
	closers []func() error
}

// New takes the data directory and listens. Nothing runs yet.
func New(cfg *Config, log zerolog.Logger) (*Node, error) {
	n := &Node{cfg: cfg, log: log, stats: &mesh.Stats{}, board: newBoard(), started: time.Now()}
	if err := n.build(); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Node) build() error {
	var err error
	if n.key, err = LoadKey(n.cfg.Key); err != nil {
		return err
	}
	dir, err := files.Open(n.cfg.Data)
	if err != nil {
		return err
	}
	unlock, err := dir.Lock()
	if err != nil {
		return err
	}
	n.onClose(func() error { unlock(); return nil })
	if n.api, err = api.Listen(n.cfg.API, n.cfg.TokenFile()); err != nil {
		return err
	}
	n.onClose(func() error { _ = n.api.Close(); return nil }) // Run has closed it already, unless it never ran
	store, err := mesh.NewDiskStore(dir)
	if err != nil {
		return fmt.Errorf("open block store: %w", err)
	}
	if err := n.join(store, dir); err != nil {
		return err
	}
	n.metrics = newMetrics(n)
	n.role = n.newRole(store, dir)
	return nil
}

func (n *Node) onClose(f func() error) { n.closers = append(n.closers, f) }

// join builds the host and the mesh from the configuration.
func (n *Node) join(store mesh.Store, dir *files.Dir) error {
	mesh.BridgeLogs(n.log.With().Str("part", "libp2p").Logger())
	var err error
	if n.members, err = membersOf(n.cfg); err != nil {
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
	if n.host, err = mesh.NewHost(hostCfg, n.stats); err != nil {
		return err
	}
	n.onClose(n.host.Close)
	n.mesh, err = mesh.New(n.host, meshCfg, store, dir, n.stats, n.log.With().Str("part", "mesh").Logger())
	return err
}

func (n *Node) meshConfig() (mesh.Config, error) {
	cfg := mesh.Config{
		Run: n.cfg.Run, Role: n.cfg.Role, Cluster: n.cfg.Cluster, Members: n.members, PollEvery: n.cfg.Poll,
	}
	var err error
	if cfg.Publishers, err = n.cfg.PublisherIDs(); err != nil {
		return cfg, err
	}
	if n.cfg.Role == mesh.RoleTrainer {
		id, err := peer.IDFromPrivateKey(n.key)
		if err != nil {
			return cfg, fmt.Errorf("node key: %w", err)
		}
		cfg.Publishers = append(cfg.Publishers, id)
	}
	if n.cfg.Bootstrap != "" {
		cfg.Bootstrap, err = LoadBootstrap(n.cfg.Bootstrap)
	}
	return cfg, err
}

func (n *Node) newRole(store mesh.Store, dir *files.Dir) role {
	lib := library{store: store, mesh: n.mesh}
	switch n.cfg.Role {
	case mesh.RoleRelay:
		return &relay{mesh: n.mesh, library: lib, board: n.board, log: n.log}
	case mesh.RoleTrainer:
		return &trainer{
			runName: n.cfg.Run, keep: n.cfg.Keep, key: n.key, dir: dir, base: n.cfg.Base, mesh: n.mesh, library: lib,
			board: n.board, log: n.log, prepared: make(chan struct{}),
		}
	default:
		return &rollout{dir: dir, base: n.cfg.Base, mesh: n.mesh, library: lib, board: n.board, log: n.log}
	}
}

// Run lives until ctx ends or a part of the node fails beyond repair.
func (n *Node) Run(ctx context.Context) error {
	n.log.Info().Str("id", n.host.ID().String()).Str("role", string(n.cfg.Role)).Str("run", n.cfg.Run).
		Strs("addrs", n.addrs()).Str("api", n.cfg.API).Msg("node up")
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return n.mesh.Run(ctx) })
	g.Go(func() error { return n.role.run(ctx) })
	g.Go(func() error { return n.watchLists(ctx) })
	g.Go(func() error { return n.api.Serve(ctx, api.NewHandler(n, n.metrics)) })
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	n.log.Info().Msg("node down")
	return err
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

// Publish is part of api.Backend.
func (n *Node) Publish(ctx context.Context, r api.PublishRequest) (api.PublishResult, error) {
	return n.role.publish(ctx, r)
}

// Pull is part of api.Backend.
func (n *Node) Pull(ctx context.Context, r api.PullRequest) (api.PullResult, error) {
	if n.cfg.Role == mesh.RoleRelay {
		return api.PullResult{}, api.NewError(http.StatusConflict, errors.New("this node is a relay and holds no weights"),
			"pull at a rollout's node")
	}
	return n.board.pull(ctx, r)
}
