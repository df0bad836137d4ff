package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
	"github.com/sparsecast/sparsecast/node/files"
)

// trainer publishes checkpoints. It keeps a copy of the state published last, since the caller may overwrite the file
// that it came from, and always codes against that copy: what was published, not what came out of the last step.
type trainer struct {
	runName string
	keep    int
	key     crypto.PrivKey
	dir     *files.Dir
	base    string // path of the base checkpoint, empty for none
	mesh    *mesh.Mesh
	library library
	board   *board
	log     zerolog.Logger

	prepared   chan struct{} // closed when the fields below are set
	slots      *slots
	epoch      uint64     // of this start
	publishing sync.Mutex // one publish at a time
}

// run offers the base checkpoint as version 0 of a new run, or goes on offering what was published before.
func (t *trainer) run(ctx context.Context) error {
	if err := t.prepare(ctx); err != nil {
		return err
	}
	close(t.prepared)
	<-ctx.Done()
	t.publishing.Lock() // a publish in progress ends before what it uses is closed
	defer t.publishing.Unlock()
	return nil
}

func (t *trainer) prepare(ctx context.Context) (err error) {
	if t.slots, err = openSlots(ctx, t.dir, t.base, t.log); err != nil {
		return err
	}
	head, catalogue, _, ok := t.mesh.Latest()
	t.epoch = max(uint64(time.Now().UnixMilli()), head.Version.Epoch+1, catalogue.Epoch+1)
	switch {
	case ok:
		if err := t.restore(ctx, head); err != nil {
			t.log.Warn().Err(err).Msg("the version published last is not on this disk, the next publish sends a full copy")
		}
		t.show(head, nil)
		t.log.Info().Uint64("number", head.Version.Number).Str("root", head.Root.Short()).Msg("going on from the version published last")
	case !t.slots.base.root.IsZero():
		return t.publishBase(ctx)
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
	manifests, err := t.library.stored(path)
	if err != nil {
		return err
	}
	return bringUp(ctx, t.slots, t.library, manifests)
}

// publishBase announces the checkpoint that every host already has. Nothing needs to be fetched for it.
func (t *trainer) publishBase(ctx context.Context) error {
	c, err := delta.OpenCheckpoint(t.slots.base.path)
	if err != nil {
		return fmt.Errorf("base checkpoint: %w", err)
	}
	defer c.Close()
	if err := t.library.keepSchema(c.Schema()); err != nil {
		return err
	}
	head := mesh.Head{
		Run: t.runName, Version: mesh.Version{Epoch: t.epoch}, Root: t.slots.base.root, Schema: c.Schema().ID(),
		Created: time.Now().UnixMilli(),
	}
	return t.announce(ctx, head, nil, nil)
}

// publish makes the checkpoint at r.Path the newest version.
func (t *trainer) publish(ctx context.Context, r api.PublishRequest) (api.PublishResult, error) {
	select {
	case <-t.prepared:
	case <-ctx.Done():
		return api.PublishResult{}, fmt.Errorf("nothing published: the node is still starting: %w", ctx.Err())
	}
	t.publishing.Lock()
	defer t.publishing.Unlock()
	begun := time.Now()
	head, catalogue, _, _ := t.mesh.Latest()
	version, err := t.nextVersion(head, r.Number)
	if err != nil {
		return api.PublishResult{}, err
	}
	c, err := delta.OpenCheckpoint(r.Path)
	if err != nil {
		return api.PublishResult{}, unusable(r.Path, err)
	}
	defer c.Close()
	m, err := t.code(ctx, c, head.Root)
	if err != nil {
		return api.PublishResult{}, fmt.Errorf("nothing published: %w", err)
	}
	next := mesh.Head{Run: t.runName, Version: version, Root: m.Target, Schema: m.Schema, Created: begun.UnixMilli()}
	edges, whole := t.library.whole(catalogue.Edges)
	if m.Base != m.Target {
		if next.Edge, err = t.offer(m, c.Schema()); err != nil {
			return api.PublishResult{}, fmt.Errorf("nothing published: %w", err)
		}
		edges = append(edges, next.Edge)
	}
	if (r.Full || !whole) && !m.Base.IsZero() {
		e, err := t.anchor(ctx, m.Target)
		if err != nil {
			return api.PublishResult{}, fmt.Errorf("nothing published: %w", err)
		}
		edges = append(edges, e)
	}
	edges = t.trim(edges)
	if err := t.announce(ctx, next, edges, m); err != nil {
		return api.PublishResult{}, err
	}
	if _, err := t.library.retain(offered(next, mesh.Catalogue{Edges: edges})); err != nil {
		t.log.Warn().Err(err).Msg("old blocks could not be removed")
	}
	return api.PublishResult{VersionInfo: versionInfo(next, m), Seconds: time.Since(begun).Seconds()}, nil
}

// unusable says why a checkpoint cannot be published, and what to do about it.
func unusable(path string, err error) error {
	hint := "publish only checkpoints that are complete: write to another name and rename, or wait for the writer"
	if _, statErr := os.Stat(path); errors.Is(statErr, fs.ErrNotExist) {
		hint = "the node opens the checkpoint itself: the path must lead to it on the node's host"
	}
	return api.NewError(http.StatusUnprocessableEntity, fmt.Errorf("nothing published: %w", err), hint)
}

func (t *trainer) nextVersion(head mesh.Head, number *uint64) (mesh.Version, error) {
	v := mesh.Version{Epoch: t.epoch, Number: head.Version.Number + 1}
	if number != nil {
		v.Number = *number
	} else if v.Number == 0 {
		return v, api.NewError(http.StatusConflict, errors.New("the newest number is the largest there is"), "give a number, after a restart of the node")
	}
	if v.Compare(head.Version) <= 0 {
		return v, api.NewError(http.StatusConflict,
			fmt.Errorf("number %d is not above %d, the newest in this epoch", v.Number, head.Version.Number),
			"numbers only grow while a trainer's node runs; restart the node to begin a new epoch, as after going back to an older checkpoint")
	}
	return v, nil
}

// code finds what changed from the state published last to c, and leaves a copy of c in the idle slot. The edge is an
// anchor where there is no such state or it has another schema.
func (t *trainer) code(ctx context.Context, c *delta.Checkpoint, published delta.Root) (*delta.Manifest, error) {
	old, from, err := t.published(ctx, published, c.Schema())
	if err != nil {
		return nil, err
	}
	var state delta.State
	if old != nil {
		defer old.Close()
		state = old
	}
	to := t.slots.idle()
	draft, err := t.slots.begin(to, c.Schema(), published)
	if err != nil {
		return nil, err
	}
	defer draft.Abort() // nothing to do after a commit
	m, err := t.writeEdge(ctx, state, c, draft)
	if err != nil {
		return nil, err
	}
	if err := c.Changed(); err != nil {
		return nil, api.NewError(http.StatusConflict, err, "publish again when the trainer has finished writing")
	}
	if state != nil && m.Base != published {
		t.slots.disown(from)
		return nil, fmt.Errorf("the copy of the last version in slot %s is damaged: its root is %s, not %s; publish again to send a full copy",
			from.name, m.Base.Short(), published.Short())
	}
	if m.Base == m.Target {
		return m, nil // the copy at hand is as good
	}
	return m, t.slots.commit(to, draft, m.Target)
}

// published opens the state published last, if it can serve as a base for schema.
func (t *trainer) published(ctx context.Context, root delta.Root, schema *delta.Schema) (*delta.Checkpoint, slot, error) {
	sl, c, err := t.slots.open(ctx, root)
	if errors.Is(err, errSlotLost) {
		t.log.Warn().Str("root", root.Short()).Msg("the version published last is not on this disk, sending a full copy")
		return nil, slot{}, nil
	}
	if err != nil || c == nil {
		return nil, slot{}, err
	}
	if !c.Schema().ID().Equals(schema.ID()) {
		t.log.Warn().Msg("tensors, shapes or dtypes changed, sending a full copy")
		return nil, sl, c.Close()
	}
	return c, sl, nil
}

func (t *trainer) writeEdge(ctx context.Context, old delta.State, c *delta.Checkpoint, copied delta.Sink) (*delta.Manifest, error) {
	spool, err := os.CreateTemp(t.dir.Path("."), "spool-*")
	if err != nil {
		return nil, fmt.Errorf("make spool: %w", err)
	}
	defer spool.Close()
	if err := os.Remove(spool.Name()); err != nil { // the space is ours until it is closed, and a crash leaves nothing
		return nil, fmt.Errorf("make spool: %w", err)
	}
	return delta.WriteEdge(ctx, spool, old, c, delta.EncodeOptions{Copy: copied}, func(id cid.Cid, chunk []byte) error {
		return t.library.store.Put(id, chunk)
	})
}

// offer puts the manifest and the schema beside the chunks, so that the edge is whole.
func (t *trainer) offer(m *delta.Manifest, schema *delta.Schema) (mesh.Edge, error) {
	if err := t.library.keepSchema(schema); err != nil {
		return mesh.Edge{}, err
	}
	b, err := m.Encode()
	if err != nil {
		return mesh.Edge{}, err
	}
	id := delta.Sum(b)
	if err := t.library.store.Put(id, b); err != nil {
		return mesh.Edge{}, fmt.Errorf("keep manifest: %w", err)
	}
	return mesh.Edge{Manifest: id, Base: m.Base, Target: m.Target, Coded: m.Coded}, nil
}

// anchor codes a full copy of the state in the slot that holds root, for hosts that deltas cannot lead there.
func (t *trainer) anchor(ctx context.Context, root delta.Root) (mesh.Edge, error) {
	_, c, err := t.slots.open(ctx, root)
	if err != nil {
		return mesh.Edge{}, err
	}
	defer c.Close()
	m, err := t.writeEdge(ctx, nil, c, nil)
	if err != nil {
		return mesh.Edge{}, err
	}
	if m.Target != root {
		return mesh.Edge{}, fmt.Errorf("full copy: root %s, want %s: %w", m.Target.Short(), root.Short(), errSlotLost)
	}
	return t.offer(m, c.Schema())
}

// trim drops the oldest edges beyond those to keep.
func (t *trainer) trim(edges []mesh.Edge) []mesh.Edge {
	return edges[max(0, len(edges)-t.keep):]
}

// announce makes the blocks durable, then signs and sends the head.
func (t *trainer) announce(ctx context.Context, head mesh.Head, edges []mesh.Edge, m *delta.Manifest) error {
	if err := t.library.store.Sync(); err != nil {
		return fmt.Errorf("nothing published: make blocks durable: %w", err)
	}
	_, before, _, _ := t.mesh.Latest()
	catalogue := mesh.Catalogue{Run: t.runName, Epoch: head.Version.Epoch, Seq: 1, Edges: edges}
	if before.Epoch == catalogue.Epoch {
		catalogue.Seq = before.Seq + 1
	}
	if err := t.mesh.Publish(ctx, head, catalogue, t.key); err != nil {
		return fmt.Errorf("announce version %s: %w", head.Version, err)
	}
	t.show(head, m)
	e := t.log.Info().Uint64("number", head.Version.Number).Str("root", head.Root.Short())
	if m != nil {
		e.Uint64("changed", m.Changed).Uint64("coded_bytes", m.Coded)
	}
	e.Msg("version published")
	return nil
}

func (t *trainer) show(head mesh.Head, m *delta.Manifest) {
	v := versionInfo(head, m)
	v.ReadyAt = time.Now().UnixMilli()
	sl, ok := t.slots.find(head.Root)
	if !ok {
		t.board.fail(errors.New("the version published last is not on this disk; the next publish sends a full copy"))
		return
	}
	t.slots.hold(sl)
	t.board.update(func(b *board) { b.latest = &v })
	t.board.serve(v, sl.dir)
}
