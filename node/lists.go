package node

import (
	"context"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/files"
)

// rereadEvery is how often the lists of peers are looked at.
const rereadEvery = 2 * time.Second

// watchLists rereads the files that change while a node runs, who may connect and where to start from, whenever they
// change. A file that cannot be read leaves everything as it is.
func (n *Node) watchLists(ctx context.Context) error {
	peers := n.watched(n.cfg.Peers, n.cfg.Open(), n.rereadPeers)
	bootstrap := n.watched(n.cfg.Bootstrap, n.cfg.Bootstrap == "", n.rereadBootstrap)
	tick := time.NewTicker(rereadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			peers()
			bootstrap()
		}
	}
}

// watched returns a function that calls reread when the file has changed since the last look.
func (n *Node) watched(path string, none bool, reread func(path string) error) func() {
	if none {
		return func() {}
	}
	last, _ := fileStamp(n.machine.FS, []string{path})
	return func() {
		now, err := fileStamp(n.machine.FS, []string{path})
		if err != nil || now == last {
			return // gone for a moment, as while an editor replaces it
		}
		last = now
		if err := reread(path); err != nil {
			n.log.Warn().Err(err).Msg("file changed and cannot be used, what it said before stays")
			return
		}
		n.log.Info().Str("file", path).Msg("reread")
	}
}

func (n *Node) rereadPeers(path string) error {
	ids, err := listedPeers(n.machine.FS, path)
	if err != nil {
		return err
	}
	n.members.Set(ids)
	return nil
}

func (n *Node) rereadBootstrap(path string) error {
	infos, err := loadBootstrap(n.machine.FS, path)
	if err != nil {
		return err
	}
	n.mesh.SetBootstrap(infos)
	return nil
}

// membersOf returns the allow-list that the configuration asks for.
func membersOf(fsys files.FS, cfg *Config) (*mesh.Members, error) {
	if cfg.Open() {
		m := mesh.NewMembers()
		m.Open = true
		return m, nil
	}
	ids, err := listedPeers(fsys, cfg.Peers)
	if err != nil {
		return nil, err
	}
	return mesh.NewMembers(ids...), nil
}

func listedPeers(fsys files.FS, path string) ([]peer.ID, error) {
	listed, err := loadPeers(fsys, path)
	if err != nil {
		return nil, err
	}
	ids := make([]peer.ID, 0, len(listed))
	for id := range listed {
		ids = append(ids, id)
	}
	return ids, nil
}
