package node

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
)

// Config is the whole configuration of a node, one YAML file. Start from DefaultConfig, LoadConfig or ExampleConfig.
type Config struct {
	// Role is what this host does in the run: trainer, rollout or relay. There is no default.
	Role mesh.Role `yaml:"role"`

	// Run names the training run of a node that takes part in one; RunOptions, too, are about that one. Nodes hear only
	// heads of their own runs. 1 to 64 letters, digits, dots, dashes and underscores.
	Run        string `yaml:"run"`
	RunOptions `yaml:",inline"`

	// Runs are what a node with several runs takes part in, instead of Run and RunOptions. What belongs to a run lies in
	// runs and its name in Data then; the connections, the chunks and the API are shared. At most 64.
	Runs []RunConfig `yaml:"runs"`

	// Cluster labels nodes with fast links between them, such as one data centre. Chunks cross between clusters as
	// seldom as possible and are shared freely inside one, so a label that spans slow links wastes those links, and
	// labels that split a fast network send the same bytes into it several times. Same form as Run.
	Cluster string `yaml:"cluster"`

	// Data is the directory for everything durable: chunks, heads, keys. One node a directory; it needs room for the
	// deltas of Keep versions.
	Data string `yaml:"data"`

	// Key is the file with this node's identity, an ed25519 private key made by sparsecast keygen.
	// Default: node.key beside the configuration.
	Key string `yaml:"key"`

	// Listen are the multiaddrs to accept peers on. TCP moves bulk with about a third of QUIC's processor time; QUIC
	// passes more NATs. Port 0 takes any free port.
	Listen []string `yaml:"listen"`

	// Announce are the multiaddrs that others are told to dial, when those differ from Listen: behind port forwarding
	// or a load balancer. Empty announces what Listen turns out to be.
	Announce []string `yaml:"announce"`

	// Prefer is the transport to dial first when a peer offers both: tcp (faster) or quic (through NATs).
	Prefer string `yaml:"prefer"`

	// TrustedNets are networks (CIDR) whose addresses are exempt from the limits on connections an address, for many
	// nodes behind one NAT or a whole cluster in one subnet. Peers from there must be members all the same.
	TrustedNets []string `yaml:"trusted_nets"`

	// Bootstrap is a file with the peers to start from, one multiaddr with /p2p/ID a line; # begins a comment. Prefer
	// /dns4 and /dns6 names. Empty waits to be dialled, which suits the node that all others start from.
	Bootstrap string `yaml:"bootstrap"`

	// Peers is who may connect: a file with one peer ID a line and a comment, or the word open for anyone who can
	// reach the port. There is no default. Open peers can read the weights and waste bandwidth, never forge.
	Peers string `yaml:"peers"`

	// SlotsDir is where the copies of the weights lie, which are made anew when they are lost: a directory of this node
	// alone, in memory (/dev/shm/NAME: engines load fastest from there, and a reboot brings the weights up again) or on
	// another disk than Data. Each copy takes the size of the model. Empty keeps them in Data; current is there always.
	SlotsDir string `yaml:"slots_dir"`

	// Scrub is how fast the copies of the weights are read in the background, every hour at most, to find bits that
	// flipped where nobody wrote: bytes a second such as 64MB, or off. It waits while versions are brought up. Blocks
	// that are damaged are rebuilt from what else is here and at the peers.
	Scrub string `yaml:"scrub"`

	// API is where the local HTTP API listens: unix:/path/to.sock for this user only, or a loopback host:port, which
	// asks for the bearer token in api.token in Data. Default: unix: and api.sock in Data.
	API string `yaml:"api"`

	// Poll is how often a peer is asked for news that gossip may have lost. Shorter notices a lost announcement
	// sooner and costs one small request each; 100ms to 1h.
	Poll time.Duration `yaml:"poll"`

	// Log is what the node writes to standard error.
	Log LogConfig `yaml:"log"`
}

// LogConfig says how much is logged, and in which form.
type LogConfig struct {
	// Level is debug, info, warn, error or off.
	Level string `yaml:"level"`
	// Format is console (for eyes) or json (one object a line, for collectors).
	Format string `yaml:"format"`
}

// DefaultConfig returns the defaults. Role, Peers and, except on a trainer, Publishers are still to be chosen, and
// Resolve fills in what depends on Data.
func DefaultConfig() *Config {
	return &Config{
		Run:        defaultRun,
		RunOptions: DefaultRunOptions(),
		Cluster:    "default",
		Data:       "data",
		Listen:     []string{"/ip4/0.0.0.0/tcp/4001", "/ip4/0.0.0.0/udp/4001/quic-v1"},
		Prefer:     "tcp",
		Poll:       3 * time.Second,
		Scrub:      "64MB",
		Log:        LogConfig{Level: "info", Format: "console"},
	}
}

// Resolve makes relative paths relative to dir and fills in the paths that depend on Data.
// LoadConfig has done so already.
func (c *Config) Resolve(dir string) {
	c.Data = within(dir, c.Data)
	if c.Key == "" {
		c.Key = "node.key"
	}
	if c.API == "" {
		c.API = "unix:" + filepath.Join(c.Data, "api.sock")
	}
	c.Key = within(dir, c.Key)
	c.resolve(dir)
	c.SlotsDir = within(dir, c.SlotsDir)
	for i := range c.Runs {
		c.Runs[i].resolve(dir)
	}
	c.Bootstrap = within(dir, c.Bootstrap)
	if !c.Open() {
		c.Peers = within(dir, c.Peers)
	}
	if socket, ok := strings.CutPrefix(c.API, "unix:"); ok {
		c.API = "unix:" + within(dir, socket)
	}
}

// Open tells whether anyone may connect.
func (c *Config) Open() bool { return c.Peers == "open" }

// TokenFile is where the bearer token of the API lies when it listens on TCP.
func (c *Config) TokenFile() string { return filepath.Join(c.Data, "api.token") }

// within returns path as seen from dir; an empty path stays empty.
func within(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
