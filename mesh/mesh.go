package mesh

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta"
	"golang.org/x/sync/errgroup"
)

// Mesh is what a node has in common for all its runs: connections, members, and the exchange of blocks. The runs are
// joined to it; see Join. Every method is safe for concurrent use.
type Mesh struct {
	host     host.Host
	cfg      Config
	log      zerolog.Logger
	stats    *Stats
	exchange *Exchange
	heads    *headSync
	dialer   *dialer
	watcher  *watcher

	mu    sync.Mutex // guards what follows
	began bool       // Run has been called: runs stays as it is
	runs  []*Run
}

// New prepares a Mesh on h. A host carries one Mesh. Nothing is sent before Run.
func New(h host.Host, cfg Config, store Store, stats *Stats, log zerolog.Logger) (*Mesh, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m := &Mesh{
		host: h, cfg: cfg, log: log, stats: stats,
		exchange: NewExchange(h, Hello{Role: cfg.Role, Cluster: cfg.Cluster}, store, cfg.Exchange, stats, log),
		dialer:   newDialer(h, &cfg, log),
	}
	m.dialer.strange = m.exchange.strange
	known := &records{h, cfg.Members, m.dialer.fresh}
	m.heads = newHeadSync(h, known, m.exchange.runsOf, cfg.Now, stats, log)
	m.watcher = &watcher{h, cfg.Members, m.heads, known, m.dialer, log}
	m.warnStrangers(cfg.Bootstrap)
	return m, nil
}

// begin returns the runs, which from now on stay what they are.
func (m *Mesh) begin() []*Run {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.began = true
	return m.runs
}

// Run takes part in the runs that were joined until ctx ends, and returns when all goroutines of the mesh have.
func (m *Mesh) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // gossip, too, when it was joined by half
	runs := m.begin()
	group, ctx := errgroup.WithContext(ctx)
	channels, err := m.tuneIn(ctx, runs)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("mesh: %w", err)
	}
	for i, r := range runs {
		r.channel.Store(channels[i])
		defer r.channel.Store(nil)
		group.Go(func() error { return channels[i].run(ctx) })
		group.Go(func() error { return m.watcher.watchGossip(ctx, r.members.list, channels[i].topic.ListPeers) })
	}
	for _, part := range []func(context.Context) error{
		m.exchange.Run,
		m.heads.serve,
		func(ctx context.Context) error { return m.heads.pollLoop(ctx, m.cfg.PollEvery) },
		m.dialer.run,
		m.watcher.watchPeers,
		m.watcher.watchMembers,
		m.watcher.watchDoor,
	} {
		group.Go(func() error { return part(ctx) })
	}
	for range askers {
		group.Go(func() error { return m.heads.askLoop(ctx) })
	}
	return group.Wait()
}

// tuneIn joins the gossip of every run.
func (m *Mesh) tuneIn(ctx context.Context, runs []*Run) ([]*channel, error) {
	names := make([]string, len(runs))
	for i, r := range runs {
		names[i] = r.cfg.Name
	}
	g := &gossip{self: m.host.ID(), ask: m.heads.request, cut: m.exchange.expel, junk: newRation(junkRate, junkBurst)}
	if err := g.start(ctx, m.host, names, m.log); err != nil {
		return nil, err
	}
	channels := make([]*channel, len(runs))
	for i, r := range runs {
		var err error
		if channels[i], err = g.join(r.cfg.Name, r.keeper); err != nil {
			return nil, err
		}
	}
	return channels, nil
}

// Wanted tells whether a connected peer is fetching the manifest id.
func (m *Mesh) Wanted(id cid.Cid) bool { return m.exchange.Wanted(id) }

// Relayed tells whether a connected relay is fetching the manifest id.
func (m *Mesh) Relayed(id cid.Cid) bool { return m.exchange.Relayed(id) }

// Fetch brings every chunk of the manifest man, whose content ID is id, into the store.
func (m *Mesh) Fetch(ctx context.Context, id cid.Cid, man *delta.Manifest, progress func(done, total int)) error {
	return m.exchange.Fetch(ctx, id, man, progress)
}

// Block returns a block of at most limit bytes, from the store or else from a peer.
func (m *Mesh) Block(ctx context.Context, id cid.Cid, limit int) ([]byte, error) {
	return m.exchange.Block(ctx, id, limit)
}

// Peers describes the connected peers.
func (m *Mesh) Peers() []PeerInfo { return m.exchange.Peers() }

// PeerSent returns the bytes of blocks sent to peers of each role.
func (m *Mesh) PeerSent() map[Role]uint64 { return m.exchange.PeerSent() }

// SetBootstrap replaces the bootstrap peers. Those already connected stay so.
func (m *Mesh) SetBootstrap(infos []peer.AddrInfo) {
	m.warnStrangers(infos)
	m.dialer.setBootstrap(infos)
}

func (m *Mesh) warnStrangers(infos []peer.AddrInfo) {
	for _, i := range infos {
		if !m.cfg.Members.Allowed(i.ID) {
			m.log.Warn().Stringer("peer", i.ID).Msg("bootstrap peer is not dialled: it is not a member; add its ID to the members")
		}
	}
}

// joined returns the runs joined so far.
func (m *Mesh) joined() []*Run {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.runs)
}
