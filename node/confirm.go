package node

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// confirmedFile names the version that the engine said it has loaded. Without it nothing is: a slot is kept too long
// rather than written while an engine reads it.
const confirmedFile = "confirmed.json"

var confirmedNote = note[mesh.VersionRoot]{confirmedFile, "the confirm"}

// confirm is part of follower.
func (r *rollout) confirm(_ context.Context, req api.VersionRequest) (api.ConfirmResult, error) {
	r.noting.Lock()
	defer r.noting.Unlock()
	var served *api.VersionInfo
	var last mesh.VersionRoot
	var done bool
	r.board.look(func(b *board) { served, last, done = copyOf(b.served), b.confirmed, !b.unconfirmed() })
	names := func(v mesh.Version) bool {
		return *req.Number == v.Number && (req.Epoch == nil || *req.Epoch == v.Epoch)
	}
	switch {
	case served == nil:
		return api.ConfirmResult{}, api.NewError(http.StatusConflict, fmt.Errorf("%d cannot be confirmed: nothing is served", *req.Number),
			"wait for it first: sparsecast pull")
	case !r.board.manual: // whoever confirms need not know how the node is configured
		return api.ConfirmResult{Served: *served}, nil
	case !last.Root.IsZero() && names(last.Version) && !names(versionOf(*served)): // said again
		return api.ConfirmResult{Served: *served}, nil
	case !names(versionOf(*served)):
		return api.ConfirmResult{}, api.NewError(http.StatusConflict, fmt.Errorf("%d cannot be confirmed: %s is served", *req.Number, versionOf(*served)),
			"load what sparsecast pull prints, then confirm that")
	case done:
		return api.ConfirmResult{Served: *served}, nil
	}
	if err := r.noteConfirmed(rootedIn(*served)); err != nil {
		return api.ConfirmResult{}, api.NewError(http.StatusInsufficientStorage, err, "nothing has changed; see to the disk and try again")
	}
	r.nudge()
	return api.ConfirmResult{Served: *served}, nil
}

func (r *rollout) noteConfirmed(v mesh.VersionRoot) error {
	if err := confirmedNote.save(r.dir, v); err != nil {
		return err
	}
	r.board.update(func(b *board) {
		b.confirmed = v
		if b.judged {
			b.judge()
		}
	})
	return nil
}

// startsHere tells whether an engine needs no word to have what is about to be served: it is the base checkpoint, from
// which engines start by themselves, on a node that has served nothing yet.
func (r *rollout) startsHere(sl slot) (starts bool) {
	r.board.look(func(b *board) { starts = b.manual && b.served == nil && sl.name == "base" })
	return starts
}

func longWait(served api.VersionInfo, d time.Duration) string {
	return fmt.Sprintf("a newer version has waited %s for the engine to confirm %d: is it loaded? then sparsecast confirm %d",
		d.Round(time.Second), served.Number, served.Number)
}
