package main

import (
	"fmt"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/sparsecast/sparsecast/node"
)

type keygenCmd struct {
	File string `arg:"" help:"The key file to make; an existing one is never replaced." type:"path"`
	jsonFlag
}

// Help is shown by sparsecast keygen --help.
func (keygenCmd) Help() string {
	return `Prints the peer ID that belongs to the key. Put it into the peers: files of the other nodes, and, for a trainer,
into their publishers:. Keep the key file secret and on its host.

  sparsecast keygen /var/lib/sparsecast/node.key`
}

// Run makes the key and prints its peer ID.
func (c keygenCmd) Run() error {
	key, err := node.CreateKey(c.File)
	if err != nil {
		return keyThere(c.File, err)
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return err
	}
	result := struct {
		ID   string `json:"id"`
		File string `json:"file"`
	}{id.String(), c.File}
	return c.show(result, func() { fmt.Println(id) })
}

// keyThere adds to err whose key the file holds, if it is one.
func keyThere(path string, err error) error {
	key, loadErr := node.LoadKey(path)
	if loadErr != nil {
		return err
	}
	id, idErr := peer.IDFromPrivateKey(key)
	if idErr != nil {
		return err
	}
	return fmt.Errorf("%w (it is the key of %s)", err, id)
}
