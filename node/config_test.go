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
	single, several := splitExample(t)
	for line := range strings.Lines(single) {
		if (!strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "#  ")) && !strings.HasPrefix(line, "#api: 127") && !strings.HasPrefix(line, "#  #") {
			text.WriteString(strings.TrimPrefix(line, "#"))
		}
	}
	c, err := parseConfig([]byte(text.String()), "example", "/etc/sparsecast")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range fieldNames() {
		if !strings.Contains(text.String()+several, name+":") {
			t.Errorf("the example lacks %s", name)
		}
	}
	want := DefaultConfig()
	want.Role, want.Bootstrap, want.Peers, want.Base = c.Role, c.Bootstrap, c.Peers, c.Base
	want.Publishers, want.Announce, want.TrustedNets, want.SlotsDir = c.Publishers, c.Announce, c.TrustedNets, c.SlotsDir
	want.Resolve("/etc/sparsecast")
	if !reflect.DeepEqual(c, want) {
		t.Errorf("defaults in the example:\n%+v\nthe defaults:\n%+v", c, want)
	}
}

// splitExample returns the example for one run, and the lines of it that are for several runs instead.
func splitExample(t *testing.T) (single, several string) {
	t.Helper()
	at := strings.Index(ExampleConfig, "\n#runs:") + 1
	if at == 0 {
		t.Fatal("the example has no runs")
	}
	return ExampleConfig[:at], strings.ReplaceAll(ExampleConfig[at:], "\n#", "\n")[1:]
}

func TestExampleOfSeveralRuns(t *testing.T) {
	_, several := splitExample(t)
	c, err := parseConfig([]byte("role: rollout\npeers: open\n"+several), "example", "/etc/sparsecast")
	if err != nil {
		t.Fatal(err)
	}
	all := c.AllRuns()
	if len(all) != 2 || all[0].Name != "chat" || all[1].Base != "/models/code" || all[1].MaxLag != 2 || all[0].Keep != DefaultRunOptions().Keep {
		t.Errorf("got %+v", all)
	}
}

func TestRunsAreResolved(t *testing.T) {
	text := "role: trainer\npeers: open\nruns: [{name: a, base: x}, {name: b, keep: 5, bases: {p: y}}]\n"
	c, err := parseConfig([]byte(text), "node.yaml", "/etc/s")
	if err != nil {
		t.Fatal(err)
	}
	want := []RunConfig{{Name: "a", RunOptions: DefaultRunOptions()}, {Name: "b", RunOptions: DefaultRunOptions()}}
	want[0].Base, want[1].Keep, want[1].Bases = "/etc/s/x", 5, map[string]string{"p": "/etc/s/y"}
	if !reflect.DeepEqual(c.AllRuns(), want) {
		t.Errorf("got %+v", c.AllRuns())
	}
	one, err := parseConfig([]byte("role: trainer\npeers: open\nrun: a\nbase: x\n"), "node.yaml", "/etc/s")
	if err != nil || !reflect.DeepEqual(one.AllRuns(), want[:1]) {
		t.Errorf("one run: got %+v, %v", one.AllRuns(), err)
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
