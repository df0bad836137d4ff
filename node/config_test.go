package node

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/mesh"
)

const publisher = "12D3KooWK99VoVxNE7XzyBwXEzW7xhK7Gpv85r9F3V3fyKSUKPH5"

// minimal is a configuration with the three fields that have no default.
const minimal = "role: rollout\npeers: open\npublishers: [" + publisher + "]\n"

func TestExampleConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.yaml")
	if err := os.WriteFile(path, []byte(ExampleConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	if c.Role != mesh.RoleRollout || c.Base != "/models/base" || c.Bootstrap != filepath.Join(filepath.Dir(path), "bootstrap.txt") {
		t.Errorf("got %+v", c)
	}
}

// TestExampleNamesEveryField reads the example with its commented-out defaults, which must be the true ones.
func TestExampleNamesEveryField(t *testing.T) {
	var text strings.Builder
	for line := range strings.Lines(ExampleConfig) {
		if (!strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "#  ")) && !strings.HasPrefix(line, "#api: 127") && !strings.HasPrefix(line, "#  #") {
			text.WriteString(strings.TrimPrefix(line, "#"))
		}
	}
	c, err := parseConfig([]byte(text.String()), "example", "/etc/sparsecast")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range fieldNames() {
		if !strings.Contains(text.String(), name+":") {
			t.Errorf("the example lacks %s", name)
		}
	}
	want := DefaultConfig()
	want.Role, want.Bootstrap, want.Peers, want.Base = c.Role, c.Bootstrap, c.Peers, c.Base
	want.Publishers, want.Announce, want.TrustedNets = c.Publishers, c.Announce, c.TrustedNets
	want.Resolve("/etc/sparsecast")
	if !reflect.DeepEqual(c, want) {
		t.Errorf("defaults in the example:\n%+v\nthe defaults:\n%+v", c, want)
	}
}

func TestDefaultsDependOnData(t *testing.T) {
	c, err := parseConfig([]byte(minimal+"data: d\n"), "node.yaml", "/etc/s")
	if err != nil {
		t.Fatal(err)
	}
	if c.Data != "/etc/s/d" || c.Key != "/etc/s/node.key" || c.API != "unix:/etc/s/d/api.sock" || c.TokenFile() != "/etc/s/d/api.token" {
		t.Errorf("got %+v", c)
	}
	if !c.Open() || c.Base != "" || c.Bootstrap != "" || c.Poll != 3*time.Second || len(c.Listen) != 2 {
		t.Errorf("got %+v", c)
	}
	again := *c
	again.Resolve("/other")
	if !reflect.DeepEqual(*c, again) {
		t.Errorf("resolving twice moved paths: %+v", again)
	}
}

func TestRelativePaths(t *testing.T) {
	text := minimal + "key: k\nbase: ../base\nbootstrap: b.txt\napi: unix:run/s\nlisten: [/ip6/::/tcp/0]\nlog: {level: debug}\n"
	c, err := parseConfig([]byte(strings.Replace(text, "open", "p.txt", 1)), "node.yaml", "/etc/s")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range [][2]string{
		{c.Key, "/etc/s/k"}, {c.Base, "/etc/base"}, {c.Bootstrap, "/etc/s/b.txt"}, {c.Peers, "/etc/s/p.txt"}, {c.API, "unix:/etc/s/run/s"},
		{c.Log.Level, "debug"}, {c.Log.Format, "console"}, {strings.Join(c.Listen, " "), "/ip6/::/tcp/0"},
	} {
		if p[0] != p[1] {
			t.Errorf("got %s, want %s", p[0], p[1])
		}
	}
}

func TestTrainerNeedsNoPublisher(t *testing.T) {
	if _, err := parseConfig([]byte("role: trainer\npeers: open\n"), "node.yaml", "/etc/s"); err != nil {
		t.Error(err)
	}
}
