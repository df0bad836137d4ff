package mesh

import (
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

func TestOutagesAreSaidOnce(t *testing.T) {
	o := newOutages()
	for _, s := range []struct {
		second int
		reason string // empty: reached
		say    bool
	}{
		{0, "", false}, // was never missed
		{1, "refused", true},
		{2, "refused", false},
		{3, "timeout", true},
		{4, "refused", false}, // said lately
		{5, "", true},
		{6, "", false},
		{7, "refused", false}, // it comes and goes
		{8, "", false},
		{700, "refused", true},
		{1400, "refused", false}, // still the same
		{1401, "", true},
	} {
		now := time.Unix(int64(s.second), 0)
		step := func() bool { return o.failed("p", s.reason, now) }
		if s.reason == "" {
			step = func() bool { return o.over("p") }
		}
		if got := step(); got != s.say {
			t.Errorf("second %d, %q: said %v", s.second, s.reason, got)
		}
	}
}

func TestOutagesOfPeersNobodyLooksForAreForgotten(t *testing.T) {
	o := newOutages()
	for _, p := range []peer.ID{"missing", "here", "gone"} {
		o.failed(p, "timeout", time.Unix(0, 0))
	}
	o.prune(setOf([]peer.ID{"missing"}), func(p peer.ID) bool { return p == "here" })
	if len(o.peers) != 2 || !o.over("missing") || !o.over("here") {
		t.Errorf("left: %v", o.peers)
	}
}

func TestAPeerOutOfReachIsSaidOnceAndSoIsItsReturn(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm, lines := newTeam(2), new(logLines)
		other := n.join(t, tm, 1, nil)
		n.cut(other.ip, "")
		n.log = lines.logger()
		nd := n.join(t, tm, 0, nil, other.info())
		hasProblem(t, nd, "", "no peer is connected")
		hasProblem(t, nd, other.id(), "not reached yet")
		time.Sleep(5 * time.Minute)
		lines.want(t, 1, "peer not reached", other.id().String())
		hasProblem(t, nd, other.id(), "not reached: timeout")
		n.mend(other.ip, "")
		eventually(t, time.Minute, "they meet", func() bool { return len(nd.Problems()) == 0 })
		lines.want(t, 1, "peer reached", other.id().String())
		lines.want(t, 1, "peer not reached")
		lines.want(t, 1, "peer connected")
	})
}

func TestAPeerThatIsNoLongerAMemberIsNotMissed(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(2)
		other := n.join(t, tm, 1, nil)
		n.cut(other.ip, "")
		nd := n.join(t, tm, 0, nil, other.info())
		time.Sleep(time.Minute)
		tm.members.Set([]peer.ID{nd.id()})
		time.Sleep(time.Minute)
		nd.dialer.mu.Lock()
		defer nd.dialer.mu.Unlock()
		if len(nd.dialer.outages.peers) > 0 {
			t.Errorf("still missed: %v", nd.dialer.outages.peers)
		}
	})
}

// A bootstrap peer that was banned here is dialled and hung up on: it is not its fault that nothing comes of it.
func TestAPeerBannedHereIsNotSaidToBeOutOfReach(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm, lines := newTeam(2), new(logLines)
		other := n.join(t, tm, 1, nil)
		n.log = lines.logger()
		nd := n.join(t, tm, 0, nil, other.info())
		time.Sleep(5 * time.Second)
		nd.exchange.offend(nd.exchange.link(other.id()), errMalformed)
		time.Sleep(2 * time.Minute)
		lines.want(t, 1, "peer cut off")
		lines.want(t, 0, "peer not reached")
	})
}
