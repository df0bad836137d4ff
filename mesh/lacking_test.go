package mesh

import (
	"context"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/delta"
)

// A block that nobody has is told, and no more once somebody brings it.
func TestLackingBlock(t *testing.T) {
	inSwarm(t, 3, flat, func(t *testing.T, nodes []*testNode) {
		b := []byte("block")
		id := delta.Sum(b)
		done := make(chan error, 1)
		go func() { _, err := nodes[1].Block(t.Context(), id, 100); done <- err }()
		time.Sleep(10 * time.Second)
		if block, ok := nodes[1].Lacking(id); !ok || block != id {
			t.Errorf("lacking %v, %s", ok, block)
		}
		if _, ok := nodes[2].Lacking(id); ok {
			t.Error("lacks what it did not ask for")
		}
		if err := nodes[2].store.Put(id, b); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if _, ok := nodes[1].Lacking(id); ok {
			t.Error("still lacking what it has")
		}
	})
}

// Of a manifest just the chunks that nobody claims are told, while the others come; who wants it is known to peers.
func TestLackingChunk(t *testing.T) {
	inSwarm(t, 3, flat, func(t *testing.T, nodes []*testNode) {
		p := newPayload(t, 16, 1)
		p.fill(t, nodes[0].store, 0, 15)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		here := 0
		go func() { done <- nodes[1].Fetch(ctx, p.id, p.m, func(n, _ int) { here = n }) }()
		time.Sleep(10 * time.Second)
		if block, ok := nodes[1].Lacking(p.id); !ok || block != p.m.Chunks[15] {
			t.Errorf("lacking %v, %s, want %s", ok, block, p.m.Chunks[15])
		}
		if !nodes[0].Wanted(p.id) || nodes[1].Wanted(p.id) || nodes[0].Wanted(p.m.Schema) {
			t.Error("who wants what is known otherwise")
		}
		if nodes[1].Alone() {
			t.Error("alone among peers")
		}
		p.fill(t, nodes[2].store, 15, 16)
		time.Sleep(10 * time.Second)
		if _, ok := nodes[1].Lacking(p.id); ok {
			t.Error("still lacking what a peer has")
		}
		cancel()
		if err := <-done; err != nil || here != 16 {
			t.Errorf("%d chunks, %v", here, err)
		}
		if nodes[0].Wanted(p.id) {
			t.Error("wanted after the end")
		}
	})
}

// A relay that is fetching something is on the way to it; a rollout just wants it, too.
func TestRelayed(t *testing.T) {
	virtually(t, func(t *testing.T, net *virtualNet) {
		var nodes []*testNode
		for i, h := range connectedHosts(t, net, 3) {
			n := startNode(t, h, Hello{Role: []Role{RoleTrainer, RoleRelay, RoleRollout}[i], Runs: []string{testRun}}, ExchangeConfig{})
			net.stop = append(net.stop, n.halt)
			nodes = append(nodes, n)
		}
		p := newPayload(t, 4, 1)
		for i, want := range []bool{false, true, false} {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			done := make(chan error, 1)
			go func() { done <- nodes[i].Fetch(ctx, p.id, p.m, nil) }()
			time.Sleep(5 * time.Second)
			if other := nodes[(i+1)%3]; other.Relayed(p.id) != want || !other.Wanted(p.id) {
				t.Errorf("%s fetches: relayed %v", nodes[i].self.Role, !want)
			}
			<-done
			cancel()
			time.Sleep(time.Second)
			if nodes[(i+1)%3].Relayed(p.id) {
				t.Error("relayed after the end")
			}
		}
	})
}

// A chunk that arrives for another download, or late for one that was given up, ends the wait for it.
func TestChunkThatCameOtherwise(t *testing.T) {
	inSwarm(t, 2, flat, func(t *testing.T, nodes []*testNode) {
		p := newPayload(t, 16, 1)
		p.fill(t, nodes[0].store, 0, 13)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- nodes[1].Fetch(ctx, p.id, p.m, nil) }()
		time.Sleep(10 * time.Second)
		p.fill(t, nodes[1].store, 13, 16)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Whoever is alone knows of nobody who has a block, and that he is.
func TestAlone(t *testing.T) {
	inSwarm(t, 2, flat, func(t *testing.T, nodes []*testNode) {
		nodes[0].crash()
		time.Sleep(time.Minute)
		if !nodes[1].Alone() {
			t.Error("in company of the dead")
		}
	})
}
