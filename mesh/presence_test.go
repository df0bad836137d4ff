package mesh

import (
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

func TestPeersComingAndGoingAreSaid(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm, lines := newTeam(2), new(logLines)
		n.log = lines.logger()
		a := n.join(t, tm, 0, nil)
		n.log = new(logLines).logger()
		b := n.join(t, tm, 1, nil)
		// Both dial at the same moment, so that there are two connections.
		a.SetBootstrap([]peer.AddrInfo{b.info()})
		b.SetBootstrap([]peer.AddrInfo{a.info()})
		time.Sleep(3 * time.Second)
		conns := a.host.Network().ConnsToPeer(b.id())
		if len(conns) != 2 {
			t.Fatalf("%d connections, the test wants 2", len(conns))
		}
		lines.want(t, 1, "peer connected", b.id().String(), `"role":"rollout"`, b.ip)
		conns[0].Close()
		time.Sleep(time.Second)
		lines.want(t, 0, "peer lost")
		a.exchange.link(b.id()).in.Reset() // b opens another control stream, and says hello again
		time.Sleep(time.Second)
		b.stop()
		b.host.Close()
		time.Sleep(time.Second)
		lines.want(t, 1, "peer lost", b.id().String())
		lines.want(t, 1, "peer connected")
	})
}

func TestStoppingIsNotLosingPeers(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm, lines := newTeam(2), new(logLines)
		n.log = lines.logger()
		a := n.join(t, tm, 0, nil)
		n.join(t, tm, 1, nil, a.info())
		time.Sleep(3 * time.Second)
		a.stop()
		lines.want(t, 2, "peer connected")
		lines.want(t, 0, "peer lost")
	})
}

func TestPeersOfAnotherRunAreSaidOnce(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm, lines := newTeam(2), new(logLines)
		n.log = lines.logger()
		a := n.join(t, tm, 0, nil)
		n.runs, n.log = []string{"grpo-8b"}, new(logLines).logger()
		b := n.join(t, tm, 1, nil, a.info())
		time.Sleep(3 * time.Second)
		for range 5 {
			a.host.Network().ClosePeer(b.id())
			time.Sleep(15 * time.Second)
		}
		lines.want(t, 1, "peer belongs to another run", `"theirs":["grpo-8b"]`, `"ours":["grpo-7b"]`)
		hasProblem(t, a, b.id(), `belongs to run "grpo-8b"`)
		hasProblem(t, b, a.id(), `belongs to run "grpo-7b"`)
	})
}
