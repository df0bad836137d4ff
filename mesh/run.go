package mesh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/sparsecast/sparsecast/delta"
)

// maxRuns bounds the runs of one node.
const maxRuns = 64

// RunConfig says what a node has to know of a run to take part in it. Name and Publishers must be set; MaxAhead has a
// default that Validate fills in.
type RunConfig struct {
	// Name is the name of the run, 1 to 128 bytes of printable characters. Nodes that share no run exchange nothing.
	Name string
	// Publishers may sign heads and catalogues, and nobody else: the IDs of signing keys, not of nodes.
	Publishers []peer.ID
	// MaxAhead is how far the epoch of a head may lie in the future by this node's clock. It stops a publisher
	// whose clock is wrong from locking the run out of lower epochs; it must exceed the clocks' disagreement. 1 h.
	MaxAhead time.Duration
}

// Validate fills in defaults and reports the first field that makes no sense.
func (c *RunConfig) Validate() error {
	if c.MaxAhead == 0 {
		c.MaxAhead = time.Hour
	}
	if err := checkRun(c.Name); err != nil {
		return err
	}
	switch {
	case len(c.Publishers) == 0:
		return errors.New("no publishers: name at least one signing key, or nothing can ever be followed")
	case c.MaxAhead < 0:
		return errors.New("the clock allowance must not be negative")
	}
	return nil
}

// Run is a node's part in one run: it hears and publishes its heads. Get one from Mesh.Join.
// Every method is safe for concurrent use.
type Run struct {
	mesh    *Mesh
	cfg     RunConfig
	keeper  *keeper
	members *following
	channel atomic.Pointer[channel] // nil unless the mesh runs
}

// Join makes the node take part in a run and takes up what ledger holds of it; each run needs a ledger of its own. All
// runs are joined before the mesh runs.
func (m *Mesh) Join(cfg RunConfig, ledger FS) (*Run, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("mesh: join run: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.began:
		return nil, fmt.Errorf("mesh: join run %q: the mesh runs already: join before", cfg.Name)
	case slices.ContainsFunc(m.runs, func(r *Run) bool { return r.cfg.Name == cfg.Name }):
		return nil, fmt.Errorf("mesh: join run %q: joined already: name each run once", cfg.Name)
	case len(m.runs) == maxRuns:
		return nil, fmt.Errorf("mesh: join run %q: at most %d runs: start another node for it", cfg.Name, maxRuns)
	}
	k, err := newKeeper(cfg, m.cfg.Now, ledger, m.stats, m.log.With().Str("run", cfg.Name).Logger())
	if err != nil {
		return nil, fmt.Errorf("mesh: join run %q: %w", cfg.Name, err)
	}
	r := &Run{mesh: m, cfg: cfg, keeper: k, members: newFollowing()}
	m.runs = append(m.runs, r)
	m.exchange.follow(cfg.Name)
	m.heads.follow(r)
	return r, nil
}

// Name returns the name of the run.
func (r *Run) Name() string { return r.cfg.Name }

// Publish signs h and c with key, makes both durable, adopts them and announces them, in that order. When it returns
// nil they are adopted; being heard is up to the peers, who also ask. Publishing the same again announces it again.
// The error tells when another trainer has got ahead: then this one must stop.
func (r *Run) Publish(ctx context.Context, h Head, c Catalogue, key crypto.PrivKey) error {
	head, err := sealHead(h, key)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	catalogue, err := sealCatalogue(c, key)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if err := r.keeper.publish(head, catalogue); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	ch := r.channel.Load()
	if ch == nil {
		return nil // not running: peers will ask
	}
	if err := ch.announce(ctx, r.keeper.current()); err != nil {
		r.keeper.log.Warn().Err(err).Msg("not announced; peers learn of it when they ask")
	}
	return nil
}

// Latest returns the newest head with who signed it, and the newest catalogue; ok is false while no head is known.
// The catalogue may be older or newer than the head: the two arrive independently.
func (r *Run) Latest() (h Head, c Catalogue, publisher peer.ID, ok bool) {
	l := r.keeper.current()
	return l.head.Value, l.catalogue.Value, l.head.Signer, l.head.Raw != nil
}

// Frozen tells whether the newest epoch is frozen, and the version for which two roots were signed.
func (r *Run) Frozen() (Version, bool) {
	l := r.keeper.current()
	return l.conflict, l.frozen
}

// Updates returns a channel that holds a token whenever Latest or Frozen has changed since the last one was taken.
func (r *Run) Updates() <-chan struct{} { return r.keeper.updates }

// Answered returns a channel that is closed once a peer has told what it knows of the run, if only that it knows nothing.
func (r *Run) Answered() <-chan struct{} { return r.members.answered }

// Seeking tells whether there is anybody who may answer, a bootstrap peer or one that is connected, and whether
// connections are being made.
func (r *Run) Seeking() (hoped, dialling bool) { return r.mesh.dialer.seeking() }

// Problems tells what keeps this node from following the run: a disk that takes no newer version, a frozen epoch, and,
// of the last ten minutes, records that were refused. Mesh.Problems includes them.
func (r *Run) Problems() []Problem { return ordered(r.problems(time.Now())) }

func (r *Run) problems(now time.Time) []Problem {
	found := r.keeper.problems(now)
	for i := range found {
		found[i].Run = r.cfg.Name
	}
	return found
}

// Fetch is Mesh.Fetch, and Block Mesh.Block, for whoever has to do with one run only: content is content.
func (r *Run) Fetch(ctx context.Context, id cid.Cid, man *delta.Manifest, progress func(done, total int)) error {
	return r.mesh.Fetch(ctx, id, man, progress)
}

// Block is Mesh.Block.
func (r *Run) Block(ctx context.Context, id cid.Cid, limit int) ([]byte, error) {
	return r.mesh.Block(ctx, id, limit)
}

// Lacking tells whether a Fetch of the manifest id, or a Block id, waits for a block that no connected peer has.
func (r *Run) Lacking(id cid.Cid) (block cid.Cid, ok bool) { return r.mesh.exchange.Lacking(id) }

// Alone tells whether no peer is connected that could be asked for blocks.
func (r *Run) Alone() bool { return r.mesh.exchange.Alone() }

// Wanted is Mesh.Wanted.
func (r *Run) Wanted(id cid.Cid) bool { return r.mesh.Wanted(id) }

// Relayed is Mesh.Relayed.
func (r *Run) Relayed(id cid.Cid) bool { return r.mesh.Relayed(id) }

// Meeting returns a channel that is closed when another peer says hello.
func (r *Run) Meeting() <-chan struct{} { return r.mesh.exchange.nextMeeting() }
