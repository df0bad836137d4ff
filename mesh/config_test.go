package mesh

import (
	"strings"
	"testing"
	"time"
)

func validConfig() Config {
	return Config{Role: RoleRollout, Members: NewMembers()}
}

func TestConfigFillsItsDefaults(t *testing.T) {
	c := validConfig()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.PollEvery != 3*time.Second || c.MaxPeers != 40 || c.Now == nil {
		t.Errorf("got %+v", c)
	}
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	for word, spoil := range map[string]func(*Config){
		"role":     func(c *Config) { c.Role = "boss" },
		"cluster":  func(c *Config) { c.Cluster = strings.Repeat("x", maxName+1) },
		"members":  func(c *Config) { c.Members = nil },
		"negative": func(c *Config) { c.PollEvery = -1 },
	} {
		c := validConfig()
		spoil(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("want an error with %q, got %v", word, err)
		}
	}
}
