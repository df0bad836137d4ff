package node

import (
	"slices"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

func TestPatience(t *testing.T) {
	const long = 20 * time.Second
	shortcut := []mesh.Edge{edge("v0", "v9", 100)}
	for name, c := range map[string]struct {
		unknown bool
		around  []mesh.Edge
		want    time.Duration
	}{
		"a chunk is missing":           {false, []mesh.Edge{edge("v0", "v1", 10)}, long},
		"unknown, and a fair detour":   {true, []mesh.Edge{edge("v0", "v1", 400), edge("v1", "v9", 400)}, hastyAfter},
		"unknown, but a full copy":     {true, []mesh.Edge{edge("v0", "v1", 400), edge("0", "v9", 401)}, long},
		"sizes near the end of uint64": {true, []mesh.Edge{edge("v0", "v1", 1<<63), edge("v1", "v9", 1<<63)}, long},
	} {
		if got := patienceFor(long, c.unknown, shortcut, c.around); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if got := patienceFor(time.Second, true, shortcut, shortcut); got != time.Second {
		t.Errorf("waits %v, longer than there is patience", got)
	}
}

func TestDetour(t *testing.T) {
	held := []delta.Root{root("v0")}
	first, second, direct, anchor := edge("v0", "v1", 300), edge("v1", "v2", 300), edge("v0", "v2", 100), edge("0", "v2", 5000)
	edges := []mesh.Edge{first, second, direct, anchor}
	for name, c := range map[string]struct {
		edges, avoid []mesh.Edge
		without      mesh.Edge
		want         []mesh.Edge
		clear        bool
	}{
		"the cheapest of the others":  {edges, nil, direct, []mesh.Edge{first, second}, true},
		"around what was avoided":     {edges, []mesh.Edge{second}, direct, []mesh.Edge{anchor}, true},
		"as a last resort the other":  {edges[:3], []mesh.Edge{first}, second, []mesh.Edge{direct}, true},
		"none is better":              {edges[:3], []mesh.Edge{second}, direct, nil, false},
		"none":                        {[]mesh.Edge{first, direct}, nil, direct, nil, false},
		"not the one that is avoided": {edges[2:], []mesh.Edge{direct}, anchor, []mesh.Edge{direct}, false},
	} {
		avoid := edgeSet(c.avoid)
		path, clear := detour(held, root("v2"), c.edges, avoid, c.without)
		if !slices.Equal(path, c.want) || clear != c.clear {
			t.Errorf("%s: %v, clear %v", name, path, clear)
		}
		if len(avoid) != len(c.avoid) {
			t.Errorf("%s: avoids %v from now on", name, avoid)
		}
	}
}
