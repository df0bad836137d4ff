package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// trainer publishes checkpoints. It keeps a copy of the state published last, since the caller may overwrite the file
// that it came from, and always codes against that copy: what was published, not what came out of the last step.
type trainer struct {
	runName string
	terms   terms
	key     crypto.PrivKey
	home
	mesh    *mesh.Run
	library library
	shelf   *shelf
	board   *board
	log     zerolog.Logger

	prepared   chan struct{} // closed when the fields below are set
	slots      *slots
	baseSchema cid.Cid // undefined without a base
	publishing gate    // one publish at a time; what goes on in the background takes it for moments, but for repairs
	background background
	tried      map[wish]bool // what was coded in the background for triedFor, so as not to do it again
	triedFor   mesh.Version
	now        func() time.Time
	pace       uint64 // of checks in the background, bytes a second

	signing sync.Mutex // guards lineage; held while something is signed
	lineage lineage
}

// run offers the base checkpoint as version 0 of a new run, or goes on offering what was published before.
func (t *trainer) run(ctx context.Context) error {
	if err := t.prepare(ctx); err != nil {
		return err
	}
	close(t.prepared)
	var watching sync.WaitGroup
	watching.Go(func() { t.watch(ctx) })
	watching.Go(func() { t.offerBase(ctx) })
	watching.Go(func() { lookout{t.slots, func() { t.mendAll(ctx) }, &room{board: t.board, log: t.log}}.run(ctx) })
	watching.Go(func() { scrubber{t.slots, t.pace, func() { t.mendAll(ctx) }, t.board, t.log}.run(ctx) })
	defer watching.Wait()
	t.enrichLoop(ctx)
	t.publishing <- struct{}{} // a publish in progress ends before what it uses is closed
	defer t.publishing.leave()
	return nil
}

func (t *trainer) prepare(ctx context.Context) (err error) {
	if t.slots, err = openSlots(ctx, t.home, t.log); err != nil {
		return err
	}
	if err := t.slots.unpoint(); err != nil { // left behind by a rollout that became a trainer
		return err
	}
	if err := t.learnBase(); err != nil {
		return err
	}
	head, ok := t.open(ctx)
	switch {
	case ok:
		if err := t.restore(ctx, head); err != nil {
			t.log.Warn().Err(err).Msg("the version published last is not on this disk")
		}
		t.show(head, nil)
		_, catalogue, _, _ := t.mesh.Latest()
		t.shelve(head, catalogue.Edges)
		t.log.Info().Uint64("number", head.Version.Number).Str("root", head.Root.Short()).Msg("going on from the version published last")
	case !t.slots.baseRoot().IsZero():
		t.board.setState(api.StateReady) // to publish; peers are told of the base when they know of nothing newer
	default:
		t.board.setState(api.StateWaiting)
	}
	return nil
}

// restore makes sure that the version published last is in a slot. A slot may be lost to a crash of the machine; the
// base and the edges on offer, which are durable, make it anew.
func (t *trainer) restore(ctx context.Context, head mesh.Head) error {
	_, catalogue, _, _ := t.mesh.Latest()
	path, err := Plan(t.slots.held(), head.Root, offered(head, catalogue))
	if err != nil || len(path) == 0 {
		return err
	}
	t.log.Info().Uint64("number", head.Version.Number).Int("edges", len(path)).Msg("restoring the version published last")
	defer t.shelf.read(path...)()
	manifests, err := t.library.stored(path)
	if err != nil {
		return err
	}
	return bringUp(ctx, t.slots, t.library, manifests)
}

// publishBase announces the checkpoint that every host already has. Nothing needs to be fetched for it.
func (t *trainer) publishBase(ctx context.Context) error {
	c, err := t.slots.read(t.slots.base)
	if err != nil {
		return fmt.Errorf("base checkpoint: %w", err)
	}
	defer c.Close()
	if err := t.library.keepSchema(c.Schema()); err != nil {
		return err
	}
	head := mesh.Head{
		Run: t.runName, Version: mesh.BaseVersion(t.slots.baseRoot()), Root: t.slots.baseRoot(), Schema: c.Schema().ID(),
		Created: t.now().UnixMilli(),
	}
	return t.announce(ctx, head, nil, nil)
}

func (t *trainer) show(head mesh.Head, m *delta.Manifest) {
	v := versionInfo(head, m)
	v.ReadyAt = t.now().UnixMilli()
	sl, ok := t.slots.find(head.Root)
	if !ok {
		t.log.Warn().Msg("the version published last is not on this disk: the next publish codes against an older one, or sends a full copy")
		t.board.setState(api.StateWaiting)
		t.board.update(func(b *board) { b.latest = &v })
		return
	}
	t.slots.hold(sl)
	t.board.update(func(b *board) { b.latest = &v })
	t.board.serve(v, sl.dir)
}
