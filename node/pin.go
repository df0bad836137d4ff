package node

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// pinFile names the version that the node stays at. It is there, saying that there is none, after an unpin: removing it
// would not be durable, and a pin that came back would lead the node back.
const pinFile = "pin.json"

type pinned struct {
	Pin *api.Pin `json:"pin"` // nil for none
}

var pinNote = note[pinned]{pinFile, "the pin"}

func pinnedRoot(p *api.Pin) mesh.VersionRoot {
	return mesh.VersionRoot{Version: mesh.Version{Epoch: p.Epoch, Number: p.Number}, Root: p.Root}
}

// recall reads what the node was told before its restart. Where that cannot be read the node stays where it is: to
// follow the newest might be just what it was told not to do.
func (r *rollout) recall() {
	r.noting.Lock()
	defer r.noting.Unlock()
	was, _, err := pinNote.load(r.dir)
	fault := ""
	if err != nil {
		fault = fmt.Sprintf("whether this node is pinned is not known, so it stays: %v: sparsecast pin NUMBER or sparsecast unpin says it anew", err)
		r.log.Error().Err(err).Msg("whether this node is pinned is not known, it stays at what it serves")
	}
	confirmed, _, err := confirmedNote.load(r.dir)
	if err != nil {
		r.log.Warn().Err(err).Msg("what the engine has confirmed is not known, waiting for it to say so again")
	}
	r.board.update(func(b *board) { b.pin, b.fault, b.confirmed = was.Pin, fault, confirmed })
}

// pin is part of follower.
func (r *rollout) pin(_ context.Context, req api.VersionRequest) (api.PinResult, error) {
	p := &api.Pin{Number: *req.Number, Since: time.Now().UnixMilli()}
	if req.Epoch != nil {
		p.Epoch = *req.Epoch
	}
	return r.setPin(p)
}

// unpin is part of follower.
func (r *rollout) unpin(context.Context) (api.PinResult, error) { return r.setPin(nil) }

func (r *rollout) setPin(p *api.Pin) (api.PinResult, error) {
	r.noting.Lock()
	defer r.noting.Unlock()
	if err := pinNote.save(r.dir, pinned{p}); err != nil {
		return api.PinResult{}, api.NewError(http.StatusInsufficientStorage, err, "nothing has changed; see to the disk and try again")
	}
	r.board.update(func(b *board) {
		b.pin, b.fault = p, ""
		if b.judged {
			b.judge()
		}
	})
	r.nudge()
	r.settle()
	if p == nil {
		r.log.Info().Msg("unpinned, following the newest version")
	} else {
		r.log.Info().Str("to", pinName(p)).Msg("pinned")
	}
	return r.pinned(), nil
}

// settlePin ties the pin to the version that it turned out to name, so that a later one of that number is not it.
func (r *rollout) settlePin() {
	r.noting.Lock()
	defer r.noting.Unlock()
	r.settle()
}

func (r *rollout) settle() {
	var p *api.Pin
	r.board.look(func(b *board) {
		if b.judged && b.pin != nil && b.pin.Root.IsZero() && !b.goal.to.Root.IsZero() {
			p = &api.Pin{Number: b.pin.Number, Epoch: b.goal.to.Version.Epoch, Root: b.goal.to.Root, Since: b.pin.Since}
		}
	})
	if p == nil {
		return
	}
	if err := pinNote.save(r.dir, pinned{p}); err != nil {
		r.log.Warn().Err(err).Msg("which version the pin names is found out again after a restart")
	}
	r.board.update(func(b *board) {
		b.pin = p
		b.judge()
	})
}

// pinned is part of follower.
func (r *rollout) pinned() (res api.PinResult) {
	r.board.look(func(b *board) {
		res.Pin, res.Served = copyOf(b.pin), copyOf(b.served)
		if (b.goal.do == await || b.goal.do == expect) && (b.pin != nil || b.fault != "") {
			res.Problem = b.goal.why
		}
	})
	return res
}
