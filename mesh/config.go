package mesh

import (
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Role says what a node is to its runs. It steers who fetches from whom; it grants no right to publish.
type Role string

const (
	RoleTrainer Role = "trainer" // the source: its uplink is spared, others are asked first
	RoleRollout Role = "rollout" // follows the run, fetches and re-shares
	RoleRelay   Role = "relay"   // follows the run for others' sake: a cache at a cluster's door
)

// Valid tells whether r is one of the three roles.
func (r Role) Valid() bool { return r == RoleTrainer || r == RoleRollout || r == RoleRelay }

// Config tells a Mesh who it is and whom it meets. Start from the zero value: Role and Members must be set, every
// other field has a default that Validate fills in.
type Config struct {
	// Role is told to peers when they meet.
	Role Role
	// Cluster labels nodes with fast links between them; at most 128 bytes. Each chunk crosses into a cluster once.
	// Nodes without a label form a cluster of their own.
	Cluster string
	// Bootstrap peers are dialled until they answer and for as long as the node runs. One reachable one is enough.
	Bootstrap []peer.AddrInfo
	// Members may connect. It is shared with the host's gater; Set on it disconnects whoever it drops.
	Members *Members
	// PollEvery is the pause between two questions for the newest head, each to a random peer. Gossip usually is
	// faster; the poll bounds how late a lost message is noticed. Shorter costs one small request a pause. 3 s.
	PollEvery time.Duration
	// MaxPeers is how many connections are enough: with that many, members known by hearsay are no longer dialled.
	// More find chunks sooner, but each costs about 0.3 MiB and a share of every announcement. Nobody who dials this
	// node is turned away for it, and the bootstrap is always dialled. 40.
	MaxPeers int
	// Exchange tunes how blocks are fetched and served; its zero value is its defaults.
	Exchange ExchangeConfig
	// Now is the clock that epochs are held against. time.Now.
	Now func() time.Time
}

// Validate fills in defaults and reports the first field that makes no sense.
func (c *Config) Validate() error {
	c.fill()
	switch {
	case !c.Role.Valid():
		return fmt.Errorf("mesh: role %q: want trainer, rollout or relay", c.Role)
	case len(c.Cluster) > maxName:
		return fmt.Errorf("mesh: cluster label of %d bytes, at most %d", len(c.Cluster), maxName)
	case c.Members == nil:
		return errors.New("mesh: no members: name the peers that may connect")
	case c.PollEvery < 0 || c.MaxPeers < 0:
		return errors.New("mesh: poll interval and peer limit must not be negative")
	}
	return nil
}

func (c *Config) fill() {
	if c.PollEvery == 0 {
		c.PollEvery = 3 * time.Second
	}
	if c.MaxPeers == 0 {
		c.MaxPeers = 40
	}
	if c.Now == nil {
		c.Now = time.Now
	}
}
