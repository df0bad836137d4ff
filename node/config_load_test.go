package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMistakes gives each mistake a file of its own below minimal's three lines, and wants the line, the field, and
// words of the cause or the fix.
func TestMistakes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{minimal + "clutser: a\n", `node.yaml:4: clutser: unknown field: did you mean "cluster"?`},
		{minimal + "log:\n  lvel: info\n", `node.yaml:5: log.lvel: unknown field: did you mean "level"?`},
		{minimal + "frobnicate: 1\n", `node.yaml:4: frobnicate: unknown field: remove it`},
		{minimal + "keep: lots\n", `node.yaml:4: keep: a value of the wrong type: want a whole number`},
		{minimal + "poll: 5\n", `node.yaml:4: poll: a value of the wrong type: want a time with its unit`},
		{minimal + "poll: soon\n", `node.yaml:4: poll: time: invalid duration "soon": want a time with its unit`},
		{minimal + "log: {level: [x]}\n", `node.yaml:4: log.level: a value of the wrong type: want text`},
		{minimal + "listen: /ip4/0.0.0.0/tcp/1\n", `node.yaml:4: listen: a value of the wrong type: want a list, one item a line after a dash, or all in [ ]`},
		{minimal + "role: relay\n", `node.yaml:4: mapping key "role" already defined`},
		{minimal + "a: b: c\n", `node.yaml:4: `},
		{minimal + "---\nrole: relay\n", `node.yaml: more than one document`},
		{minimal + "run: !!str x\n", `node.yaml:4: run: YAML of kind Tag: write the value itself`},
		{minimal + "run: &a x\ncluster: *a\n", `node.yaml:4: run: YAML of kind Anchor`},
		{"", `node.yaml: role: "" is not among its values: use one of trainer, rollout or relay`},
		{"# nothing but a comment\n", `node.yaml: role: `},
		{"null\n", `node.yaml: role: `},
		{"- role\n", `node.yaml:1: `},
		{"role: server\n", `node.yaml:1: role: "server" is not among its values`},
		{"role: rollout\npublishers: [" + publisher + "]\n", `node.yaml: peers: nobody may connect`},
		{"role: relay\npeers: open\n", `node.yaml: publishers: no publisher`},
		{"role: relay\npeers: open\npublishers:\n  - " + publisher + "\n  - 12D3\n", `node.yaml:5: publishers[1]: `},
		{minimal + "run: a b\n", `node.yaml:4: run: "a b" is no name`},
		{minimal + "cluster: ''\n", `node.yaml:4: cluster: "" is no name`},
		{minimal + "run: " + strings.Repeat("x", 65) + "\n", `node.yaml:4: run: `},
		{minimal + "data: ''\n", `node.yaml:4: data: no directory`},
		{minimal + "listen: []\n", `node.yaml:4: listen: no address`},
		{minimal + "listen: [/ip4/1.2.3.4/tcp/1, nonsense]\n", `node.yaml:4: listen[1]: `},
		{minimal + "listen: [/ip4/1.2.3.4/udp/1]\n", `node.yaml:4: listen[0]: /ip4/1.2.3.4/udp/1 is neither TCP nor QUIC`},
		{minimal + "announce: [/ip4/1.2.3.4]\n", `node.yaml:4: announce[0]: `},
		{minimal + "prefer: sctp\n", `node.yaml:4: prefer: "sctp" is not among its values: use one of tcp or quic`},
		{minimal + "trusted_nets: [10.0.0.0]\n", `node.yaml:4: trusted_nets[0]: `},
		{minimal + "api: 0.0.0.0:80\n", `node.yaml:4: api: `},
		{minimal + "api: unix:/" + strings.Repeat("x", 200) + "\n", `set api: to a shorter path`},
		{minimal + "keep: 0\n", `node.yaml:4: keep: 0 versions: use 1 to 4096`},
		{minimal + "poll: 1ms\n", `node.yaml:4: poll: every 1ms: use 100ms to 1h0m0s`},
		{minimal + "base: /x\nbases: {policy: /y}\n", `node.yaml:5: bases: said beside base`},
		{minimal + "bases: {policy: /y, ../x: /z}\n", `node.yaml:4: bases: "../x" is no name of a state`},
		{minimal + "bases: {policy: ''}\n", `node.yaml:4: bases: state policy: no path`},
		{minimal + "bases: {'': /x}\n", `node.yaml:4: bases: a state without a name`},
		{minimal + "bases: /x\n", `node.yaml:4: bases: `},
		{minimal + "group_by: expert\n", `node.yaml:4: group_by: "expert" is not among its values: use one of none or layer`},
		{"role: trainer\npeers: open\nruns: [{name: a, group_by: x}]\n", `node.yaml:3: runs[0].group_by: "x" is not`},
		{"role: trainer\npeers: open\nruns: []\n", `node.yaml:3: runs: 0 runs: list 1 to 64`},
		{"role: trainer\npeers: open\nruns: [{name: a}, {name: a}]\n", `node.yaml:3: runs[1].name: run "a" is listed twice`},
		{"role: trainer\npeers: open\nruns: [{name: Chat}, {name: chat}]\n", `node.yaml:3: runs[1].name: "Chat" and "chat" differ only in large and small letters`},
		{minimal + "bases: {policy: /y, Policy: /z}\n", `node.yaml:4: bases: states Policy and policy differ only in large and small letters`},
		{"role: trainer\npeers: open\nruns:\n  - name: a\n  - name: ../b\n", `node.yaml:5: runs[1].name: "../b" is no name`},
		{"role: trainer\npeers: open\nruns:\n  - base: a\n", `node.yaml: runs[0].name: "" is no name`},
		{"role: trainer\npeers: open\nruns:\n  - name: a\n    max_leg: 3\n", `node.yaml:5: runs[0].max_leg: unknown field: did you mean "max_lag"?`},
		{"role: trainer\npeers: open\nruns:\n  - name: a\n    keep: -3\n", `node.yaml:5: runs[0].keep: -3 versions`},
		{"role: trainer\npeers: open\nruns:\n  - name: a\n    keep: x\n", `node.yaml:5: runs[0].keep: a value of the wrong type: want a whole number`},
		{"role: trainer\npeers: open\nruns: a\n", `node.yaml:3: runs: `},
		{"role: rollout\npeers: open\nruns:\n  - name: a\n", `node.yaml: runs[0].publishers: no publisher`},
		{"role: trainer\npeers: open\nrun: a\nruns:\n  - name: b\n", `node.yaml:3: run: said beside the list of runs: with runs: each run says it for itself`},
		{"role: trainer\npeers: open\nkeep: 5\nruns:\n  - name: b\n", `node.yaml:3: keep: said beside the list of runs`},
		{minimal + "runs:\n  - name: b\n", `node.yaml:3: publishers: said beside the list of runs`},
		{minimal + "log:\n  level: loud\n", `node.yaml:5: log.level: "loud" is not among its values`},
		{minimal + "log:\n  format: xml\n", `node.yaml:5: log.format: `},
	} {
		_, err := parseConfig([]byte(c.text), "node.yaml", "/etc/s")
		var e *ConfigError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) || e.Fix == "" || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestLoadConfigNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.yaml")
	if _, err := LoadConfig(path); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("absent: got %v", err)
	}
	if err := os.WriteFile(path, []byte("role: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadConfig(path); err == nil || !strings.HasPrefix(err.Error(), path+":1: role: ") {
		t.Errorf("got %v", err)
	}
	if err := os.Truncate(path, maxConfigFile+1); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadConfig(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("large: got %v", err)
	}
}

func TestValidateWithoutFile(t *testing.T) {
	c := DefaultConfig()
	c.Role, c.Peers = "relay", "open"
	c.Resolve("/etc/s")
	if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), "publishers: no publisher") {
		t.Errorf("got %v", err)
	}
	c.Publishers = []string{publisher}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add(minimal)
	f.Add(ExampleConfig)
	f.Add("log: {level: [x]}\n")
	f.Add("role: &a rollout\nrun: *a\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseConfig([]byte(text), "node.yaml", "/etc/s")
		if (c == nil) == (err == nil) {
			t.Errorf("got %v, %v", c, err)
		}
		if err == nil && c.Validate() != nil {
			t.Errorf("accepted what it refuses now: %v", c.Validate())
		}
	})
}
