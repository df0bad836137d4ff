package mesh

import (
	"context"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// TestBothSidesSayWhyAPeerIsRefused has a trainer that does not know a worker, until the operator adds it.
func TestBothSidesSayWhyAPeerIsRefused(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm, guarded := newTeam(2), newTeam(2)
		guarded.members = NewMembers(idOf(tm.keys[0]))
		door, caller := new(logLines), new(logLines)
		n.log = door.logger()
		trainer := n.join(t, guarded, 0, nil)
		n.log = caller.logger()
		worker := n.join(t, tm, 1, nil, trainer.info())
		time.Sleep(5 * time.Minute)
		if got := trainer.stats.PeersRefused.Load(); got < 5 {
			t.Errorf("%d refusals counted in five minutes", got)
		}
		door.want(t, 1, "refused a peer that is not a member", worker.id().String(), worker.ip)
		caller.want(t, 1, "peer not reached", trainer.id().String(), "does its peers file list "+worker.id().String()+"?")
		hasProblem(t, trainer, worker.id(), "add its ID to the peers file")
		hasProblem(t, worker, trainer.id(), "does its peers file list")

		time.Sleep(10 * time.Minute)
		door.want(t, 2, "refused a peer")
		caller.want(t, 1, "peer not reached")
		guarded.members.Set(tm.members.List())
		eventually(t, time.Minute, "they meet", func() bool { return len(trainer.Problems())+len(worker.Problems()) == 0 })
		caller.want(t, 1, "peer reached")
		door.want(t, 2, `"level":"warn"`)
	})
}

// TestARefusalIsUnderstoodOverEveryTransport runs real hosts: what a dialler sees of a refusal differs between them.
func TestARefusalIsUnderstoodOverEveryTransport(t *testing.T) {
	for _, listen := range []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"} {
		tm, lines := newTeam(2), new(logLines)
		guarded := loopbackHost(t, 0, NewMembers(), new(Stats), listen)
		caller := loopbackHost(t, 1, tm.members, new(Stats), listen)
		m, err := New(caller, Config{
			Role: RoleRollout, Members: tm.members,
			Bootstrap: []peer.AddrInfo{{ID: guarded.ID(), Addrs: guarded.Addrs()}},
		}, NewMemoryStore(), new(Stats), lines.logger())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		eventually(t, 20*time.Second, listen+": the refusal is said", func() bool { return lines.count("peer not reached") > 0 })
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		lines.want(t, 1, "peer not reached", "does its peers file list "+caller.ID().String()+"?")
		lines.want(t, 1, "peer not reached")
	}
}

func TestManyStrangersDoNotFillTheLog(t *testing.T) {
	m := NewMembers()
	for i := range 3 * maxRecalled {
		m.turnAway(knock{idOf(testKey(i)), ""})
		m.turnAway(knock{idOf(testKey(i)), ""})
	}
	if got := len(m.knocks); got != maxRecalled {
		t.Errorf("%d lines, want %d", got, maxRecalled)
	}
}
