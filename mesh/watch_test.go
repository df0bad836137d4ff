package mesh

import (
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// conn is a connection of which only its name and age are known.
type conn struct {
	network.Conn
	name   string
	opened time.Time
}

func (c conn) ID() string { return c.name }
func (c conn) Stat() network.ConnStats {
	return network.ConnStats{Stats: network.Stats{Opened: c.opened}}
}

func TestNewConnectionsSupersedeOldOnes(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.Unix(100, 0).Add(d) }
	fresh := conn{name: "new", opened: at(0)}
	for _, c := range []struct {
		what   string
		other  conn
		closed bool
	}{
		{"itself", fresh, false},
		{"opened together", conn{name: "twin", opened: at(-time.Second)}, false},
		{"opened together, a little later", conn{name: "twin", opened: at(time.Second)}, false},
		{"older", conn{name: "old", opened: at(-3 * time.Second)}, true},
		{"newer", conn{name: "newer", opened: at(3 * time.Second)}, false},
	} {
		if got := len(superseded(fresh, []network.Conn{c.other})) == 1; got != c.closed {
			t.Errorf("%s: closed %v", c.what, got)
		}
	}
}

func TestFollowersThatGossipHasLostAreOverdue(t *testing.T) {
	a := make(absences)
	both, one := []peer.ID{"a", "b"}, []peer.ID{"a"}
	for _, s := range []struct {
		second            int
		expected, present []peer.ID
		late              []peer.ID
	}{
		{0, both, one, nil},
		{5, both, one, nil},
		{6, both, one, []peer.ID{"b"}},
		{7, both, one, nil}, // waits anew
		{10, both, both, nil},
		{12, both, one, nil}, // was back in between
		{14, one, one, nil},  // has left
		{16, both, one, nil},
		{22, both, one, []peer.ID{"b"}},
	} {
		if got := a.overdue(time.Unix(int64(s.second), 0), s.expected, s.present); !slices.Equal(got, s.late) {
			t.Errorf("second %d: %v, want %v", s.second, got, s.late)
		}
	}
}
