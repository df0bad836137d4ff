package mesh

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

func TestLateJoinerLearnsTheHead(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(3)
		trainer := n.join(t, tm, 0, nil)
		early := n.join(t, tm, 1, nil, trainer.info())
		time.Sleep(2 * time.Second)
		v := Version{uint64(time.Now().UnixMilli()), 1}
		// A catalogue too large to ride along with the head.
		if err := trainer.Publish(t.Context(), testHead(v), testCatalogue(v.Epoch, 1, 200), tm.publisher); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Second, "the early one has head and catalogue", func() bool { return early.holds(v, 200) })
		time.Sleep(time.Minute)
		late := n.join(t, tm, 2, nil, trainer.info())
		eventually(t, 2*time.Second, "the late one has head and catalogue", func() bool { return late.holds(v, 200) })
	})
}

// holds tells whether the node's newest head is v and its catalogue has that many edges.
func (n *node) holds(v Version, edges int) bool {
	h, c, publisher, ok := n.Latest()
	return ok && publisher != "" && h.Version == v && len(c.Edges) == edges
}

func TestNodesThatKnowOnlyTheBootstrapFindEachOther(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(5)
		door := n.join(t, tm, 0, nil)
		var nodes []*node
		for i := 1; i < 5; i++ {
			nodes = append(nodes, n.join(t, tm, i, nil, door.info()))
		}
		for _, nd := range nodes {
			eventually(t, 15*time.Second, "everyone is connected to everyone", func() bool { return len(nd.host.Network().Peers()) == 4 })
		}
		n.cut(door.ip, "")
		v := now(1)
		if err := nodes[0].Publish(t.Context(), testHead(v), testCatalogue(v.Epoch, 1, 2), tm.publisher); err != nil {
			t.Fatal(err)
		}
		for _, nd := range nodes {
			eventually(t, time.Second, "the head is heard without the bootstrap", func() bool { return nd.holds(v, 2) })
		}
	})
}

// The hardest case of gossipsub: nobody else is subscribed, the old host vanished without a word, and the old
// connection goes on looking alive.
func TestRestartAtANewAddressHearsTheNextHead(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(2)
		trainer := n.join(t, tm, 0, nil)
		worker := n.join(t, tm, 1, nil, trainer.info())
		publish(t, trainer, tm, now(1))
		eventually(t, 2*time.Second, "the first head is heard", func() bool { return worker.holds(now(1), 1) })
		time.Sleep(10 * time.Second)
		n.cut(worker.ip, "")
		worker.stop()
		time.Sleep(3 * time.Second)
		again := n.join(t, tm, 1, worker.disk.crash(), trainer.info())
		if !again.holds(now(1), 1) {
			t.Error("the ledger did not bring the head back")
		}
		time.Sleep(3 * time.Second)
		for i := uint64(2); i < 6; i++ {
			publish(t, trainer, tm, now(i))
			// Closing the old connection may make gossipsub forget the new subscription: then the first head comes
			// with a poll, and by the second the connection has been renewed. Less than a poll: it was gossip.
			limit := time.Second
			if i == 2 {
				limit = 4 * time.Second
			}
			eventually(t, limit, "the next head is heard", func() bool { return again.holds(now(i), 1) })
			time.Sleep(8 * time.Second)
		}
	})
}

func TestConflictingHeadIsKeptOut(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(3)
		trainer := n.join(t, tm, 0, nil)
		worker := n.join(t, tm, 1, nil, trainer.info())
		publish(t, trainer, tm, now(7))
		eventually(t, 2*time.Second, "the first head is heard", func() bool { return worker.holds(now(7), 1) })

		twin := n.join(t, tm, 2, nil) // holds the same key and knows nothing of the first head
		other := testHead(now(7))
		other.Root[5]++
		other.Edge.Target = other.Root
		if err := twin.Publish(t.Context(), other, testCatalogue(now(0).Epoch, 9, 3), tm.publisher); err != nil {
			t.Fatal(err)
		}
		twin.SetBootstrap([]peer.AddrInfo{trainer.info(), worker.info()})
		eventually(t, 10*time.Second, "the conflict is noticed", func() bool { return worker.stats.HeadsConflicting.Load() > 0 })
		if h, _, _, _ := worker.Latest(); h.Root != testHead(now(7)).Root {
			t.Error("the second root has replaced the first")
		}
		eventually(t, 10*time.Second, "the trainer notices too", func() bool { return trainer.stats.HeadsConflicting.Load() > 0 })
		if err := trainer.Publish(t.Context(), testHead(now(8)), testCatalogue(now(0).Epoch, 10, 1), tm.publisher); err == nil {
			t.Error("a frozen epoch goes on")
		}
		v := Version{now(0).Epoch + 5, 1}
		publish(t, trainer, tm, v)
		eventually(t, 5*time.Second, "a new epoch is heard", func() bool { return worker.holds(v, 1) })
	})
}

func TestMembersDroppedFromTheListAreDisconnected(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(3)
		a := n.join(t, tm, 0, nil)
		b := n.join(t, tm, 1, nil, a.info())
		c := n.join(t, tm, 2, nil, a.info())
		met := func(x *node, peers int) func() bool {
			return func() bool { return len(x.host.Network().Peers()) == peers }
		}
		for _, x := range []*node{a, b, c} {
			eventually(t, 15*time.Second, "all meet", met(x, 2))
		}
		tm.members.Set([]peer.ID{a.id(), b.id()})
		for _, x := range []*node{a, b} {
			eventually(t, time.Second, "the dropped one is gone", met(x, 1))
		}
		time.Sleep(time.Minute)
		if !met(a, 1)() || !met(b, 1)() || !met(c, 0)() {
			t.Error("the dropped one came back")
		}
	})
}

func TestPublishIsDurableBeforeItIsHeard(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(2)
		trainer := n.join(t, tm, 0, nil)
		worker := n.join(t, tm, 1, nil, trainer.info())
		publish(t, trainer, tm, now(1))
		eventually(t, 2*time.Second, "the first head is heard", func() bool { return worker.holds(now(1), 1) })

		trainer.disk.setFail(errors.New("disk on fire"))
		if err := trainer.Publish(t.Context(), testHead(now(2)), testCatalogue(now(0).Epoch, 2, 1), tm.publisher); err == nil {
			t.Error("published without a disk")
		}
		time.Sleep(10 * time.Second)
		if !worker.holds(now(1), 1) || !trainer.holds(now(1), 1) {
			t.Error("a head that is not durable was adopted")
		}
		trainer.disk.setFail(nil)
		publish(t, trainer, tm, now(2))
		eventually(t, time.Second, "the next head is heard", func() bool { return worker.holds(now(2), 1) })
	})
}

// now returns version number of the epoch in which every virtual test begins.
func now(number uint64) Version { return Version{946_684_800_000, number} }

func publish(t *testing.T, n *node, tm *team, v Version) {
	t.Helper()
	if err := n.Publish(t.Context(), testHead(v), testCatalogue(v.Epoch, v.Number, 1), tm.publisher); err != nil {
		t.Fatal(err)
	}
}

// A member that hangs up on this node, as one that has banned it does, is dialled ever more rarely.
func TestAPeerThatHangsUpIsNotDialledInALoop(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(2)
		sulky, _ := n.host(t, tm.keys[1], tm.members, new(Stats))
		var calls atomic.Int64
		sulky.Network().Notify(&network.NotifyBundle{ConnectedF: func(_ network.Network, c network.Conn) {
			calls.Add(1)
			go c.Close()
		}})
		n.join(t, tm, 0, nil, *host.InfoFromHost(sulky))
		time.Sleep(2 * time.Minute)
		if got := calls.Load(); got < 5 || got > 20 {
			t.Errorf("dialled %d times in two minutes", got)
		}
	})
}

func TestRunEndsWellBeforeItBegan(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(1)
		nd := n.join(t, tm, 0, nil)
		nd.stop()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 { // gossip notices at random
			if err := nd.Run(ctx); err != nil {
				t.Fatal(err)
			}
		}
	})
}
