package mesh

import (
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// hasProblem fails unless n tells of a problem with p in such words.
func hasProblem(t *testing.T, n *node, p peer.ID, words string) {
	t.Helper()
	all := n.Problems()
	if !slices.ContainsFunc(all, func(q Problem) bool { return q.Peer == p && strings.Contains(q.Text, words) }) {
		t.Errorf("no problem %q with %s among %v", words, p, all)
	}
}

func TestProblemsAreBoundedAndSorted(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		nd := n.join(t, newTeam(1), 0, nil)
		for i := range 3 * maxProblems {
			p := peer.ID("stranger " + strconv.Itoa(i))
			nd.cfg.Members.turnAway(knock{p, "/ip4/10.0.0.1/tcp/1"})
			nd.run.keeper.refused.news(topic{peer: p}, "forged", time.Now())
		}
		all := nd.Problems()
		if len(all) != maxProblems {
			t.Errorf("%d problems, want %d", len(all), maxProblems)
		}
		if !slices.IsSortedFunc(all, func(a, b Problem) int { return strings.Compare(string(a.Peer), string(b.Peer)) }) {
			t.Error("not sorted by peer")
		}
		hasProblem(t, nd, "", "no peer is connected") // what weighs most is never crowded out
		time.Sleep(recallFor)
		if all := nd.Problems(); len(all) != 1 {
			t.Errorf("after a while %d problems are left, want 1", len(all))
		}
	})
}

func TestABootstrapPeerThatIsNoMemberIsAProblem(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		p := idOf(testKey(77))
		nd := n.join(t, newTeam(1), 0, nil, peer.AddrInfo{ID: p})
		time.Sleep(time.Second)
		hasProblem(t, nd, p, "not a member")
	})
}

func TestAFullDiskIsAProblemUntilItIsNot(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(2)
		trainer := n.join(t, tm, 0, nil)
		worker := n.join(t, tm, 1, nil, trainer.info())
		time.Sleep(time.Second)
		worker.disk.setFail(syscall.ENOSPC)
		publish(t, trainer, tm, now(1))
		time.Sleep(time.Second)
		hasProblem(t, worker, "", "could not be noted: ledger: write")
		worker.disk.setFail(nil)
		eventually(t, 10*time.Second, "the head is adopted after all", func() bool { return worker.holds(now(1), 1) })
		if all := worker.Problems(); len(all) > 0 {
			t.Errorf("problems are left: %v", all)
		}
	})
}
