package node

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// higher returns the key of a publisher that counts before another one.
func higher(t *testing.T, than peer.ID) (crypto.PrivKey, peer.ID) {
	t.Helper()
	for {
		key, _, err := crypto.GenerateEd25519Key(rand.Reader)
		try(t, err)
		id, err := peer.IDFromPrivateKey(key)
		try(t, err)
		if id > than {
			return key, id
		}
	}
}

// Two publishers chose one version, and the root of the other one counts. Until that is here the first is served, after
// a restart, too; then the other takes its place.
func TestTheRootThatCountsIsServedOfOneVersion(t *testing.T) {
	c := newCast(t, 2)
	news := c.record(t)
	key, id := higher(t, c.id)
	rival := news[2]
	rival.head.Version, rival.catalogue.Epoch = news[1].head.Version, news[1].head.Version.Epoch
	rival.catalogue.Versions = []mesh.VersionRoot{{Version: rival.head.Version, Root: rival.head.Root}}
	synctest.Test(t, func(t *testing.T) {
		v := c.enter(t, mesh.RoleRollout)
		v.cfg.Publishers = append(v.cfg.Publishers, id.String())
		serves := func(n *part, version int) error {
			synctest.Wait()
			if s := n.Status(t.Context()); s.Served == nil || s.Served.Root != c.roots[version] {
				return fmt.Errorf("serves %v, want state %d", s.Served, version)
			}
			if got, err := v.shown(c); got != version {
				return fmt.Errorf("an engine finds state %d, %w", got, err)
			}
			return nil
		}
		v.live(t, crash{}, func(ctx context.Context, n *part) error {
			if err := news[1].hear(ctx, n, c.publisher); err != nil {
				return err
			}
			if err := arrive(ctx, c, v, n, 1); err != nil {
				return err
			}
			if err := n.run.Publish(ctx, rival.head, rival.catalogue, key); err != nil {
				return err
			}
			return serves(n, 1)
		})
		m := v.disk.Mount()
		v.live(t, crash{}, func(ctx context.Context, n *part) error {
			synctest.Wait()
			return serves(n, 1)
		})
		rival.lay(t, m)
		v.live(t, crash{}, func(ctx context.Context, n *part) error {
			synctest.Wait()
			if _, err := n.Pull(ctx, api.PullRequest{Number: &rival.head.Version.Number}); err != nil {
				return err
			}
			return serves(n, 2)
		})
	})
}
