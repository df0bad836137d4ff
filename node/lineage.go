package node

import (
	"fmt"
	"net/http"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// lineage decides in which epoch a trainer publishes, and when it must not. It is plain state: no clock, no network.
//
// Every start opens an epoch above all that was heard, so that whoever starts last is followed. A trainer that hears a
// higher version under its own key is not alone: another one with that key runs, or ran and was forgotten. One that has
// not published any weights yet takes over, once, since it is likely the one that was meant to go on; any other stops,
// or the two would chase each other. A higher version of another publisher is a hand-over, and no error: this trainer
// publishes no more until it is told to take over.
type lineage struct {
	self   peer.ID      // whose key signs
	epoch  uint64       // that is open; 0 before the start
	signed mesh.Version // the newest that this process signed, zero while it has signed none
	base   mesh.Version // that this process announced, zero for none
	worked bool         // weights were published since the start, not just the base or what was known before

	tookOver bool
	passed   *rival     // a publisher that got ahead, nil while none has
	stopped  *api.Error // why nothing is published any more
}

// rival is another publisher's version.
type rival struct {
	version mesh.Version
	signer  peer.ID
}

// duty is what a trainer has to do about what it heard.
type duty uint8

const (
	dutyNone     duty = iota
	dutyTakeOver      // announce the version heard again, in the epoch that is open now
	dutyStop          // say why
)

// next returns the epoch for the next version. Until something is signed in the open one it follows the clock, which
// may have been put right; fresh asks for a new one.
func (l *lineage) next(now time.Time, heard mesh.Version, fresh bool) uint64 {
	if !fresh && l.signed.Epoch == l.epoch && l.epoch > 0 {
		return l.epoch
	}
	return max(uint64(max(now.UnixMilli(), 1)), heard.Epoch+1, l.signed.Epoch+1)
}

// sign notes that v was signed; work tells whether it brought weights.
func (l *lineage) sign(v mesh.Version, work bool) {
	if v.Compare(l.signed) <= 0 || v.Epoch < l.epoch {
		return // an older one, for the sake of the catalogue beside it
	}
	l.epoch, l.signed, l.passed = v.Epoch, v, nil
	l.worked = l.worked || work
}

// admit tells why nothing can be published now. A fresh epoch gets ahead of another publisher, but does not help against
// another trainer with the same key.
func (l *lineage) admit(fresh bool) error {
	switch {
	case l.stopped != nil:
		return l.stopped
	case l.passed != nil && !fresh:
		return api.NewError(http.StatusConflict,
			fmt.Errorf("nothing published: publisher %s has got ahead with version %s", l.passed.signer, l.passed.version),
			"if this trainer is to take over, publish with --new-epoch or restart the node; if not, stop it")
	}
	return nil
}

// hear takes in the newest version that is known, and whether its epoch is frozen since two roots were signed in it.
func (l *lineage) hear(v mesh.Version, signer peer.ID, frozen bool) duty {
	switch {
	case l.stopped != nil || l.epoch == 0:
		return dutyNone
	case frozen && signer == l.self && v.Epoch >= l.epoch:
		return l.halt(fmt.Errorf("nothing is published any more: two different states were signed with this trainer's key for one version of epoch %s", mesh.EpochName(v.Epoch)),
			"another trainer has the same key: give each trainer its own, stop the other one, and restart this node")
	case v.Compare(l.signed) <= 0 || v.Epoch < l.epoch:
		return dutyNone
	case signer != l.self:
		l.passed = &rival{v, signer}
		return dutyNone
	case !l.worked && !l.tookOver:
		l.tookOver, l.epoch = true, v.Epoch+1
		return dutyTakeOver
	}
	return l.halt(fmt.Errorf("nothing is published any more: another trainer with this key published version %s", v),
		"give each trainer its own key, or stop one of the two; restart this node to take over")
}

func (l *lineage) halt(why error, hint string) duty {
	l.stopped = api.NewError(http.StatusConflict, why, hint)
	return dutyStop
}
