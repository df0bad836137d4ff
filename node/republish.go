package node

import (
	"context"
	"fmt"
	"net/http"

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
		return res, api.NewError(http.StatusConflict,
			fmt.Errorf("%d is already published, with these weights (root %s)", *r.Number, newest.Root.Short()),
			"for a full copy of them publish again with --full, under a number of its own")
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
