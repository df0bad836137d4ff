package node

import (
	"errors"
	"strings"
	"testing"
)

// TestNothingBlowsUp fills a configuration with what the YAML library takes seconds or minutes for.
func TestNothingBlowsUp(t *testing.T) {
	for _, c := range []struct{ begin, unit, want string }{
		{"", "[", ":1: nested too deep"},
		{"", "{", ":1: nested too deep"},
		{"role: [\n", "[", ":2: nested too deep"},
		{"", "[{a: ", ":1: nested too deep"},
		{"", "[[a],", ":1: nested too deep"},
		{"", "{a: {b: c}, d: ", ":1: nested too deep"},
		{"", "- ", ":1: nested too deep"},
		{"role:\n", "- ", ":2: nested too deep"},
		{"", "? ", ":1: nested too deep"},
		{"", "? - ", ":1: nested too deep"},
		{"role: |\n ", "\n", ": too many lines"},
		{"role: >\n ", "\r\n", ": too many lines"},
		{"role: |\n ", "\r", ": too many lines"},
		{"", "--- a\n", ": too many lines"},
	} {
		text := c.begin + strings.Repeat(c.unit, (maxConfigFile-len(c.begin))/len(c.unit))
		_, err := parseConfig([]byte(text), "node.yaml", "/etc/s")
		var e *ConfigError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), "node.yaml"+c.want) || e.Fix == "" {
			t.Errorf("%q...: got %v, want %s", c.unit, err, c.want)
		}
	}
}

func TestLargeConfigurations(t *testing.T) {
	flow := minimal + "listen: [" + strings.Repeat("/ip4/1.2.3.4/tcp/1, ", 1000) + "/ip4/1.2.3.4/tcp/2]\n"
	block := minimal + "listen:\n" + strings.Repeat("  - /ip4/1.2.3.4/tcp/1\n", 1000) + strings.Repeat("# said twice\r\n", 1000)
	for _, text := range []string{flow, block} {
		if c, err := parseConfig([]byte(text), "node.yaml", "/etc/s"); err != nil || len(c.Listen) < 1000 {
			t.Errorf("%.60q...: got %v", text, err)
		}
	}
}
