package mesh

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta"
	"golang.org/x/sync/errgroup"
)

// Mesh is a node's part in one run: it hears and publishes heads, and fetches and serves blocks.
// Every method is safe for concurrent use.
type Mesh struct {
	host     host.Host
	cfg      Config
	log      zerolog.Logger
	keeper   *keeper
	exchange *Exchange
	heads    *headSync
	dialer   *dialer
	watcher  *watcher
	gossip   atomic.Pointer[gossip] // nil unless Run runs
}

// New prepares a Mesh on h and takes up what ledger holds. A host carries one Mesh. Nothing is sent before Run.
func New(h host.Host, cfg Config, store Store, ledger FS, stats *Stats, log zerolog.Logger) (*Mesh, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	k, err := newKeeper(&cfg, ledger, stats, log)
	if err != nil {
		return nil, fmt.Errorf("mesh: %w", err)
	}
	m := &Mesh{
		host: h, cfg: cfg, log: log, keeper: k,
		exchange: NewExchange(h, Hello{cfg.Role, cfg.Cluster, cfg.Run}, store, cfg.Exchange, stats, log),
		dialer:   newDialer(h, &cfg, log),
	}
	m.dialer.strange = m.exchange.strange
	known := &records{h, cfg.Members, m.dialer.fresh}
	m.heads = newHeadSync(h, cfg.Run, k, known, log)
	m.watcher = &watcher{h, cfg.Members, m.heads, known, m.dialer, log}
	m.warnStrangers(cfg.Bootstrap)
	return m, nil
}

// Run takes part in the run until ctx ends, and returns when all goroutines of the mesh have.
func (m *Mesh) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // gossip, too, when it was joined by half
	group, ctx := errgroup.WithContext(ctx)
	g := &gossip{keeper: m.keeper, ask: m.heads.request, cut: m.exchange.expel, junk: newRation(junkRate, junkBurst)}
	err := g.join(ctx, m.host, m.cfg.Run, m.log)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("mesh: %w", err)
	}
	m.gossip.Store(g)
	defer m.gossip.Store(nil)
	for _, part := range []func(context.Context) error{
		m.exchange.Run,
		g.run,
		m.heads.serve,
		func(ctx context.Context) error { return m.heads.pollLoop(ctx, m.cfg.PollEvery) },
		m.dialer.run,
		m.watcher.watchPeers,
		m.watcher.watchMembers,
		m.watcher.watchDoor,
		func(ctx context.Context) error { return m.watcher.watchGossip(ctx, g.topic.ListPeers) },
	} {
		group.Go(func() error { return part(ctx) })
	}
	for range askers {
		group.Go(func() error { return m.heads.askLoop(ctx) })
	}
	return group.Wait()
}

// Publish signs h and c with key, makes both durable, adopts them and announces them, in that order. When it returns
// nil they are adopted; being heard is up to the peers, who also ask. Publishing the same again announces it again.
// The error tells when another trainer has got ahead: then this one must stop.
func (m *Mesh) Publish(ctx context.Context, h Head, c Catalogue, key crypto.PrivKey) error {
	head, err := sealHead(h, key)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	catalogue, err := sealCatalogue(c, key)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if err := m.keeper.publish(head, catalogue); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	g := m.gossip.Load()
	if g == nil {
		return nil // not running: peers will ask
	}
	if err := g.announce(ctx, m.keeper.current()); err != nil {
		m.log.Warn().Err(err).Msg("not announced; peers learn of it when they ask")
	}
	return nil
}

// Latest returns the newest head with who signed it, and the newest catalogue; ok is false while no head is known.
// The catalogue may be older or newer than the head: the two arrive independently.
func (m *Mesh) Latest() (h Head, c Catalogue, publisher peer.ID, ok bool) {
	l := m.keeper.current()
	return l.head.Value, l.catalogue.Value, l.head.Signer, l.head.Raw != nil
}

// Updates returns a channel that holds a token whenever Latest has changed since the last one was taken.
func (m *Mesh) Updates() <-chan struct{} { return m.keeper.updates }

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
