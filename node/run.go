package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// role is what a node does in a run.
type role interface {
	run(ctx context.Context) error
}

// source is a role that makes versions.
type source interface {
	publish(ctx context.Context, r api.PublishRequest) (api.PublishResult, error)
}

// checker is a role that keeps copies of the weights.
type checker interface {
	check(ctx context.Context) (api.CheckResult, error)
}

// follower is a role that serves versions and can be told which.
type follower interface {
	pull(ctx context.Context, r api.PullRequest) (api.PullResult, error)
	pin(ctx context.Context, r api.VersionRequest) (api.PinResult, error)
	unpin(ctx context.Context) (api.PinResult, error)
	pinned() api.PinResult
	confirm(ctx context.Context, r api.VersionRequest) (api.ConfirmResult, error)
}

// part is this node's part in one run: what it keeps of it on disk, what it does in it, and what the API tells of it.
// The rest it shares with the other runs of the node.
type part struct {
	node     *Node
	settings RunConfig
	home
	log   zerolog.Logger
	board *board
	run   *mesh.Run // nil when it could not be joined
	role  role      // nil without run

	failed context.Context // ends when this part fails, with the reason
	fail   context.CancelCauseFunc
}

// newPart takes up what the disk holds of a run. A part that fails at that is one all the same: it tells why.
func (n *Node) newPart(cfg RunConfig) (*part, error) {
	p := &part{node: n, settings: cfg, home: home{dir: n.dir, place: n.place, base: cfg.basePaths(), cut: cfg.cutting()}, log: n.log, board: newBoard()}
	p.failed, p.fail = context.WithCancelCause(context.Background())
	if len(n.cfg.Runs) > 0 {
		p.log = n.log.With().Str("run", cfg.Name).Logger()
	}
	err := p.join()
	if err != nil {
		p.give(err)
		return p, err
	}
	p.role = p.newRole()
	return p, nil
}

// join takes part in the run, with a ledger of its own.
func (p *part) join() (err error) {
	if err := p.node.checkMoved(p.settings.Name); err != nil {
		return err
	}
	if len(p.node.cfg.Runs) > 0 {
		if p.home, err = p.node.homeOf(p.settings); err != nil {
			return err
		}
	}
	cfg, err := p.meshConfig()
	if err != nil {
		return err
	}
	p.run, err = p.node.mesh.Join(cfg, p.dir)
	return err
}

// meshConfig says whom to believe in the run: a trainer believes itself, too.
func (p *part) meshConfig() (mesh.RunConfig, error) {
	cfg := mesh.RunConfig{Name: p.settings.Name}
	var err error
	if cfg.Publishers, err = p.settings.publisherIDs(""); err != nil || p.node.cfg.Role != mesh.RoleTrainer {
		return cfg, err
	}
	id, err := peer.IDFromPrivateKey(p.node.key)
	if err != nil {
		return cfg, fmt.Errorf("node key: %w", err)
	}
	cfg.Publishers = append(cfg.Publishers, id)
	return cfg, nil
}

func (p *part) newRole() role {
	p.one = p.settings.Slots == 1
	n, lib := p.node, library{store: p.node.store, mesh: p.run}
	switch n.cfg.Role {
	case mesh.RoleRelay:
		return &relay{dir: p.dir, mesh: p.run, runName: p.settings.Name, library: lib, shelf: n.shelf, board: p.board, log: p.log, patience: stallAfter}
	case mesh.RoleTrainer:
		return &trainer{
			runName: p.settings.Name, terms: termsOf(p.settings.RunOptions), key: n.key, home: p.home, mesh: p.run, library: lib,
			shelf: n.shelf, board: p.board, log: p.log, prepared: make(chan struct{}), publishing: newGate(), background: newBackground(),
			now: n.machine.Now, pace: n.cfg.scrubPace(), lineage: lineage{self: n.host.ID()},
		}
	default:
		r := &rollout{
			home: p.home, mesh: p.run, runName: p.settings.Name, library: lib, shelf: n.shelf, board: p.board, log: p.log,
			told: make(chan struct{}, 1), patience: stallAfter, opened: make(chan struct{}), pace: n.cfg.scrubPace(),
		}
		r.unfinished = unfinished{library: lib, shelf: n.shelf}
		r.unfinishedMemo = memo[unfinishedKept]{note: unfinishedNote, dir: p.dir, log: p.log}
		r.unfinished.resume(r.unfinishedMemo.recall())
		r.openWays(p.settings)
		if p.one && p.settings.Confirm == confirmManual {
			p.log.Warn().Msg("slots: 1 with confirm: manual: an update waits for the confirm of the one before, and then overwrites what the engine loaded")
		}
		p.board.maxLag, p.board.manual = uint64(p.settings.MaxLag), p.settings.Confirm == confirmManual
		return r
	}
}

// live does the node's work in the run until ctx ends or it fails beyond repair, which it tells.
func (p *part) live(ctx context.Context) error {
	if p.role == nil {
		return context.Cause(p.failed)
	}
	err := p.role.run(ctx)
	if err != nil && ctx.Err() == nil {
		p.give(err)
		err = context.Cause(p.failed)
	}
	return err
}

// give gives this part up.
func (p *part) give(err error) {
	hint := "mend what it names and restart the node"
	if several := len(p.node.cfg.Runs) > 1; several {
		err = fmt.Errorf("run %s: %w", p.settings.Name, err)
		hint += "; its other runs go on meanwhile"
		p.log.Error().Err(err).Msg("a run has failed")
	}
	p.board.fail(err)
	p.fail(api.NewError(http.StatusInternalServerError, err, hint))
}

// do answers a call, which ends early when this part fails.
func do[T any](ctx context.Context, p *part, call func(ctx context.Context) (T, error)) (res T, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.failed, cancel)()
	if err = context.Cause(p.failed); err != nil {
		return res, err
	}
	res, err = call(ctx)
	if why := context.Cause(p.failed); err != nil && why != nil {
		err = why
	}
	return res, err
}

// Publish is part of api.Run.
func (p *part) Publish(ctx context.Context, r api.PublishRequest) (api.PublishResult, error) {
	return do(ctx, p, func(ctx context.Context) (api.PublishResult, error) {
		t, ok := p.role.(source)
		if !ok {
			return api.PublishResult{}, api.NewError(http.StatusConflict, fmt.Errorf("this node is a %s and publishes nothing", p.node.cfg.Role),
				"publish at the node of the trainer (role: trainer)")
		}
		return t.publish(ctx, r)
	})
}

// Pull is part of api.Run.
func (p *part) Pull(ctx context.Context, r api.PullRequest) (api.PullResult, error) {
	return do(ctx, p, func(ctx context.Context) (api.PullResult, error) {
		if f, ok := p.role.(follower); ok {
			return f.pull(ctx, r)
		}
		if p.node.cfg.Role == mesh.RoleRelay {
			return api.PullResult{}, api.NewError(http.StatusConflict, errors.New("this node is a relay and holds no weights"),
				"pull at a rollout's node")
		}
		if r.Exact {
			_, err := p.follower()
			return api.PullResult{}, err
		}
		return p.board.pull(ctx, r)
	})
}

// Pin is part of api.Run.
func (p *part) Pin(ctx context.Context, r api.VersionRequest) (api.PinResult, error) {
	return told(ctx, p, func(ctx context.Context, f follower) (api.PinResult, error) { return f.pin(ctx, r) })
}

// Unpin is part of api.Run.
func (p *part) Unpin(ctx context.Context) (api.PinResult, error) {
	return told(ctx, p, func(ctx context.Context, f follower) (api.PinResult, error) { return f.unpin(ctx) })
}

// Pinned is part of api.Run.
func (p *part) Pinned(ctx context.Context) (api.PinResult, error) {
	return told(ctx, p, func(_ context.Context, f follower) (api.PinResult, error) { return f.pinned(), nil })
}

// Check is part of api.Run.
func (p *part) Check(ctx context.Context) (api.CheckResult, error) {
	return do(ctx, p, func(ctx context.Context) (api.CheckResult, error) {
		c, ok := p.role.(checker)
		if !ok {
			return api.CheckResult{}, api.NewError(http.StatusConflict, errors.New("this node is a relay and holds no weights"),
				"blocks are checked whenever they are read or sent")
		}
		return c.check(ctx)
	})
}

// Confirm is part of api.Run.
func (p *part) Confirm(ctx context.Context, r api.VersionRequest) (api.ConfirmResult, error) {
	return told(ctx, p, func(ctx context.Context, f follower) (api.ConfirmResult, error) { return f.confirm(ctx, r) })
}

// told answers a call that only a follower can.
func told[T any](ctx context.Context, p *part, call func(ctx context.Context, f follower) (T, error)) (T, error) {
	return do(ctx, p, func(ctx context.Context) (res T, err error) {
		f, err := p.follower()
		if err != nil {
			return res, err
		}
		return call(ctx, f)
	})
}

func (p *part) follower() (follower, error) {
	f, ok := p.role.(follower)
	if !ok {
		return nil, api.NewError(http.StatusConflict, fmt.Errorf("this node is a %s and follows no version", p.node.cfg.Role),
			"ask the node of a rollout (role: rollout)")
	}
	return f, nil
}
