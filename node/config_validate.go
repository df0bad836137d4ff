package node

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/multiformats/go-multiaddr"
	"github.com/sparsecast/sparsecast/node/api"
)

const (
	maxKeep = 4096
	maxLag  = 4096
	minPoll = 100 * time.Millisecond
	maxPoll = time.Hour
	// A slack near 0 would make a shortcut for every version.
	minSlack = 0.1
	maxSlack = 100
)

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ConfigError names the place of a mistake in a configuration, its cause, and what to do about it.
type ConfigError struct {
	File  string // empty when the configuration was made by a program
	Line  int    // 0 when the field is not in the file
	Field string // as it is written in the file, such as listen[1]; empty when the file is no YAML
	Fix   string
	Err   error
}

func (e *ConfigError) Error() string {
	s := ""
	if e.File != "" {
		s = e.File + ":"
	}
	if e.Line > 0 {
		s += strconv.Itoa(e.Line) + ":"
	}
	if s != "" {
		s += " "
	}
	if e.Field != "" {
		s += e.Field + ": "
	}
	return s + e.Err.Error() + ": " + e.Fix
}

func (e *ConfigError) Unwrap() error { return e.Err }

func mistake(field string, err error, fix string) error {
	return &ConfigError{Field: field, Err: err, Fix: fix}
}

// Validate returns a *ConfigError for the first mistake. It does not look at the disk.
func (c *Config) Validate() error {
	for _, check := range []func() error{
		c.checkCluster, c.checkChoices, c.checkPaths, c.checkNetwork, c.checkRuns, c.checkAPI, c.checkScrub, c.checkPoll,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) checkCluster() error { return checkName("cluster", c.Cluster) }

func checkName(field, name string) error {
	if !namePattern.MatchString(name) {
		return mistake(field, fmt.Errorf("%q is no name", name),
			"use 1 to 64 letters, digits, dots, dashes and underscores, a letter or digit first")
	}
	return nil
}

// choice is a field that has one of a few values.
type choice struct {
	field, value string
	choices      []string
}

func (c *Config) checkChoices() error {
	return checkChoices("", []choice{
		{"role", string(c.Role), []string{"trainer", "rollout", "relay"}},
		{"prefer", c.Prefer, []string{"tcp", "quic"}},
		{"log.level", c.Log.Level, []string{"debug", "info", "warn", "error", "off"}},
		{"log.format", c.Log.Format, []string{"console", "json"}},
	})
}

func checkChoices(at string, fields []choice) error {
	for _, f := range fields {
		if !slices.Contains(f.choices, f.value) {
			return mistake(at+f.field, fmt.Errorf("%q is not among its values", f.value), "use one of "+enumerate(f.choices))
		}
	}
	return nil
}

func (c *Config) checkPaths() error {
	if c.Data == "" {
		return mistake("data", errors.New("no directory"), "name a directory on a disk with room for the deltas of keep: versions")
	}
	if c.Key == "" {
		return mistake("key", errors.New("no file"), "leave the field out for node.key in data:")
	}
	if c.Peers == "" {
		return mistake("peers", errors.New("nobody may connect"),
			"name a file with one peer ID a line, or write open to let in anyone who can reach the port")
	}
	return nil
}

func (c *Config) checkNetwork() error {
	if len(c.Listen) == 0 {
		return mistake("listen", errors.New("no address"), "leave the field out for port 4001 on every interface")
	}
	if _, err := c.ListenAddrs(); err != nil {
		return err
	}
	if _, err := c.AnnounceAddrs(); err != nil {
		return err
	}
	_, err := c.Networks()
	return err
}

func (c *Config) checkAPI() error {
	if _, err := api.ParseAddress(c.API); err != nil {
		return mistake("api", err, "leave the field out for a socket in data:")
	}
	return nil
}

func (c *Config) checkPoll() error {
	if c.Poll < minPoll || c.Poll > maxPoll {
		return mistake("poll", fmt.Errorf("every %s", c.Poll), fmt.Sprintf("use %s to %s", minPoll, maxPoll))
	}
	return nil
}

// ListenAddrs returns Listen, parsed.
func (c *Config) ListenAddrs() ([]multiaddr.Multiaddr, error) { return parseAddrs("listen", c.Listen) }

// AnnounceAddrs returns Announce, parsed.
func (c *Config) AnnounceAddrs() ([]multiaddr.Multiaddr, error) {
	return parseAddrs("announce", c.Announce)
}

// Networks returns TrustedNets, parsed.
func (c *Config) Networks() ([]netip.Prefix, error) {
	return parseList("trusted_nets", c.TrustedNets, netip.ParsePrefix, "write a network as 10.0.0.0/8 or fd00::/8")
}

func parseAddrs(field string, list []string) ([]multiaddr.Multiaddr, error) {
	return parseList(field, list, parseTransport, "write it as /ip4/0.0.0.0/tcp/4001 or /ip4/0.0.0.0/udp/4001/quic-v1")
}

// parseTransport reads a multiaddr of a transport that nodes speak.
func parseTransport(s string) (multiaddr.Multiaddr, error) {
	a, err := multiaddr.NewMultiaddr(s)
	if err != nil {
		return nil, err
	}
	_, tcp := a.ValueForProtocol(multiaddr.P_TCP)
	_, quic := a.ValueForProtocol(multiaddr.P_QUIC_V1)
	if tcp != nil && quic != nil {
		return nil, fmt.Errorf("%s is neither TCP nor QUIC", s)
	}
	return a, nil
}

func parseList[T any](field string, list []string, parse func(string) (T, error), fix string) ([]T, error) {
	parsed := make([]T, 0, len(list))
	for i, s := range list {
		v, err := parse(s)
		if err != nil {
			return nil, mistake(fmt.Sprintf("%s[%d]", field, i), err, fix)
		}
		parsed = append(parsed, v)
	}
	return parsed, nil
}

func enumerate(words []string) string {
	s := words[0]
	for i, w := range words[1:] {
		if i == len(words)-2 {
			s += " or " + w
		} else {
			s += ", " + w
		}
	}
	return s
}
