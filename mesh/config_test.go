package mesh

import (
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

func validConfig() Config {
	return Config{Run: testRun, Role: RoleRollout, Publishers: []peer.ID{"publisher"}, Members: NewMembers()}
}

func TestConfigFillsItsDefaults(t *testing.T) {
	c := validConfig()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.PollEvery != 3*time.Second || c.MaxPeers != 40 || c.MaxAhead != time.Hour || c.Now == nil {
		t.Errorf("got %+v", c)
	}
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	for word, spoil := range map[string]func(*Config){
		"run":        func(c *Config) { c.Run = "" },
		"printable":  func(c *Config) { c.Run = "a\x00b" },
		"role":       func(c *Config) { c.Role = "boss" },
		"cluster":    func(c *Config) { c.Cluster = strings.Repeat("x", maxName+1) },
		"publishers": func(c *Config) { c.Publishers = nil },
		"members":    func(c *Config) { c.Members = nil },
		"negative":   func(c *Config) { c.PollEvery = -1 },
	} {
		c := validConfig()
		spoil(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("want an error with %q, got %v", word, err)
		}
	}
}
