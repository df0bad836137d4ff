package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// publishedAlready answers a request for the number of the newest version. One with the same weights is no error, as when
// a script tries again because the answer to its first try was lost; of any other it says what is published under that
// number. It returns refusal where it knows no better.
func (t *trainer) publishedAlready(ctx context.Context, r api.PublishRequest, newest mesh.VersionRoot, refusal error) (res api.PublishResult, err error) {
	if r.NewEpoch || r.Number == nil || *r.Number != newest.Version.Number || newest.Root.IsZero() {
		return res, refusal
	}
	c, err := openStates(t.dir.FS(), pathsOf(r), t.cut)
	if err != nil {
		return res, api.NewError(http.StatusConflict, fmt.Errorf("%w; and what is to be published: %w", refusal, err), numbersHint)
	}
	defer c.Close()
	f, err := readAll(ctx, c, nil)
	if err != nil {
		return res, api.NewError(http.StatusConflict, fmt.Errorf("%w; and what is to be published: %w", refusal, err), numbersHint)
	}
	if f.root != newest.Root {
		return res, api.NewError(http.StatusConflict,
			fmt.Errorf("%d is published already, with other weights (root %s, not %s)", *r.Number, newest.Root.Short(), f.root.Short()), numbersHint)
	}
	if r.Full {
		return t.offerFull(ctx)
	}
	known := false
	t.board.look(func(b *board) {
		if known = b.latest != nil && versionOf(*b.latest) == newest.Version; known {
			res.VersionInfo, res.ReadyAt = *b.latest, 0
		}
	})
	if !known {
		return res, refusal
	}
	res.Again = true
	return res, nil
}

// wantsOnlyFull tells whether a request names no checkpoint, but wants a full copy of what is published already.
func wantsOnlyFull(r api.PublishRequest) bool {
	return r.Full && r.Path == "" && len(r.Paths) == 0 && r.Number == nil && !r.NewEpoch
}

// offerFull puts a full copy of the newest version on offer, which stays what it is: nobody moves. It is called by who is
// in publishing.
func (t *trainer) offerFull(ctx context.Context) (res api.PublishResult, err error) {
	head, catalogue, _, ok := t.mesh.Latest()
	if !ok {
		return res, api.NewError(http.StatusConflict, errors.New("no full copy is made: nothing is published yet"), "publish a checkpoint: sparsecast publish CHECKPOINT --full")
	}
	was, begun := head.Version, t.now()
	if head.Version.Epoch, err = t.nextEpoch(head, catalogue, false); err != nil {
		return res, err
	}
	d := t.shelf.draft()
	defer d.close()
	edges, _ := t.library.whole(offered(head, catalogue))
	i := slices.IndexFunc(edges, func(e mesh.Edge) bool { return e.Base.IsZero() && e.Target == head.Root })
	if i < 0 {
		e, err := t.codeWish(ctx, wish{target: head.Root}, d)
		if err != nil {
			return res, fmt.Errorf("no full copy is made: %w", err)
		}
		i, edges = len(edges), append(edges, e)
	}
	res.Full, res.Again = edges[i].Coded, true
	kept, excess := retain(edges, t.terms.limits, t.pledge(head, edges, before(head, catalogue)))
	if err := t.send(ctx, head, kept, false); err != nil {
		return res, err
	}
	if head.Version != was {
		t.show(head, nil)
	}
	t.noteExcess(excess)
	d.close()
	t.shelve(head, kept)
	t.board.look(func(b *board) { res.VersionInfo = *b.latest })
	res.ReadyAt, res.Seconds = 0, t.now().Sub(begun).Seconds()
	return res, nil
}
