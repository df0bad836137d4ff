package node

import (
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/files"
)

// Machine is what a node lives on. The zero value is this one; tests simulate others.
type Machine struct {
	// FS holds everything that the configuration names by path, except the sockets of the API.
	FS files.FS
	// NewHost opens the network, as mesh.NewHost does.
	NewHost func(mesh.HostConfig, *mesh.Stats) (host.Host, error)
	// Now is the clock that epochs are taken from and held against.
	Now func() time.Time
	// NoAPI leaves the local HTTP API out; the methods of Node are still there.
	NoAPI bool
}

// orThis fills in what is missing from this machine.
func (m Machine) orThis() Machine {
	if m.FS == nil {
		m.FS = files.OS{}
	}
	if m.NewHost == nil {
		m.NewHost = mesh.NewHost
	}
	if m.Now == nil {
		m.Now = time.Now
	}
	return m
}
