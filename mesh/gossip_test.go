package mesh

import (
	"bytes"
	"context"
	"testing"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"pgregory.net/rapid"
)

// rogue is a member that says on the topic whatever it likes.
type rogue struct {
	host  host.Host
	ip    string
	topic *pubsub.Topic
}

func (n *virtualNet) rogue(t *testing.T, tm *team, i int, to peer.AddrInfo) *rogue {
	t.Helper()
	h, ip := n.host(t, tm.keys[i], tm.members, new(Stats))
	ctx, cancel := context.WithCancel(t.Context())
	n.stop = append(n.stop, cancel)
	ps, err := pubsub.NewGossipSub(ctx, h, pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign), pubsub.WithNoAuthor(),
		pubsub.WithMessageIdFn(contentID), pubsub.WithFloodPublish(true), pubsub.WithMaxMessageSize(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	topic, err := ps.Join(topicOf(testRun))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := topic.Subscribe(); err != nil {
		t.Fatal(err)
	}
	if err := h.Connect(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	return &rogue{h, ip, topic}
}

func (r *rogue) say(t *testing.T, data []byte) {
	t.Helper()
	if err := r.topic.Publish(t.Context(), data); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
}

func TestLiesInGossipAreCountedAndDoNoHarm(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(4)
		trainer := n.join(t, tm, 0, nil)
		worker := n.join(t, tm, 1, nil, trainer.info())
		publish(t, trainer, tm, now(4))
		old := trainer.run.keeper.current().head.Raw
		publish(t, trainer, tm, now(5))
		eventually(t, 2*time.Second, "the head is heard", func() bool { return worker.holds(now(5), 1) })

		r := n.rogue(t, tm, 2, worker.info())
		n.cut(r.ip, trainer.ip)     // what reaches the trainer was passed on
		time.Sleep(3 * time.Second) // to be known to be subscribed
		forgery, err := sealHead(testHead(now(6)), testKey(2000))
		if err != nil {
			t.Fatal(err)
		}
		future, err := sealHead(testHead(Version{now(0).Epoch + 2*3600_000, 1}), tm.publisher)
		if err != nil {
			t.Fatal(err)
		}
		tampered := bytes.Replace(spoken(t, trainer), []byte(testRun), []byte("grpo-8b"), 1)
		for _, c := range []struct {
			what    string
			message []byte
			counter func() uint64
		}{
			{"a head by another key", encoded(t, forgery.Raw), worker.stats.HeadsForged.Load},
			{"a tampered head", tampered, worker.stats.HeadsForged.Load},
			{"an old head", encoded(t, old), worker.stats.HeadsStale.Load},
			{"a head from the future", encoded(t, future.Raw), worker.stats.HeadsEarly.Load},
			{"a message too large", make([]byte, maxAnnouncement+1), worker.stats.MessagesMalformed.Load},
			{"noise", []byte("noise"), worker.stats.MessagesMalformed.Load},
			{"an announcement of nothing", encoded(t, nil), worker.stats.MessagesMalformed.Load},
		} {
			before := c.counter()
			r.say(t, c.message)
			if c.counter() != before+1 {
				t.Errorf("%s: counted %d times, want once", c.what, c.counter()-before)
			}
		}
		r.say(t, make([]byte, 4*gossipFrame)) // costs the stream, nothing else
		if !worker.holds(now(5), 1) {
			t.Error("a lie was believed")
		}
		if forged := trainer.stats.HeadsForged.Load() + trainer.stats.MessagesMalformed.Load(); forged != 0 {
			t.Errorf("%d lies were passed on", forged)
		}
		publish(t, trainer, tm, now(6))
		eventually(t, time.Second, "the mesh goes on", func() bool { return worker.holds(now(6), 1) })
	})
}

// A member that says nothing but junk is cut off, and its junk does not fill the log.
func TestAFloodOfJunkCutsItsSenderOff(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		lines := new(logLines)
		n.log = lines.logger()
		tm := newTeam(2)
		nd := n.join(t, tm, 0, nil)
		r := n.rogue(t, tm, 1, nd.info())
		time.Sleep(3 * time.Second)
		stranger := mustSeal(t, testHead(now(1)), 2000)
		connected := func() bool { return len(nd.host.Network().ConnsToPeer(r.host.ID())) > 0 }
		said := 0
		for ; connected() && said < 100; said++ {
			junk, err := announcement{Head: stranger.Raw, Catalogue: []byte{byte(said)}}.encode()
			if err != nil {
				t.Fatal(err)
			}
			r.say(t, junk)
		}
		if said < junkBurst || said > 2*junkBurst || nd.stats.PeersBanned.Load() != 1 {
			t.Errorf("after %d announcements %d peers are banned", said, nd.stats.PeersBanned.Load())
		}
		lines.want(t, 2, "refused") // the head and the catalogue
	})
}

// spoken returns what n last announced.
func spoken(t *testing.T, n *node) []byte {
	t.Helper()
	b, err := newAnnouncement(n.run.keeper.current()).encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func encoded(t *testing.T, head []byte) []byte {
	t.Helper()
	b, err := announcement{Head: head}.encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOnlyNewsIsPassedOn(t *testing.T) {
	for hv := absent; hv <= malformed; hv++ {
		for cv := absent; cv <= malformed; cv++ {
			want := pubsub.ValidationIgnore
			switch {
			case hv == forged || hv == malformed || cv == forged || cv == malformed:
				want = pubsub.ValidationReject
			case hv == accepted || cv == accepted:
				want = pubsub.ValidationAccept
			}
			if got := relayed(hv, cv); got != want {
				t.Errorf("head %s, catalogue %s: got %v, want %v", hv, cv, got, want)
			}
		}
	}
}

func TestAnnouncementsStayWithinTheirBound(t *testing.T) {
	key := testKey(0)
	rapid.Check(t, func(t *rapid.T) {
		head, err := sealHead(testHead(now(1)), key)
		if err != nil {
			t.Fatal(err)
		}
		c, err := sealCatalogue(testCatalogue(1, 1, rapid.IntRange(0, 300).Draw(t, "edges")), key)
		if err != nil {
			t.Fatal(err)
		}
		b, err := newAnnouncement(&latest{head: head, catalogue: c}).encode()
		if err != nil {
			t.Fatal(err)
		}
		a, err := decodeAnnouncement(b)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Head, head.Raw) {
			t.Fatal("the head has changed on the way")
		}
		if rides := len(a.Catalogue) > 0; rides != (len(c.Raw) <= maxPassenger) {
			t.Fatalf("a catalogue of %d bytes: rides along %v", len(c.Raw), rides)
		}
	})
}

func FuzzAnnouncement(f *testing.F) {
	head, err := sealHead(testHead(now(1)), testKey(0))
	if err != nil {
		f.Fatal(err)
	}
	b, err := announcement{Head: head.Raw}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{0xa1, 0x00, 0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := decodeAnnouncement(b)
		if err != nil {
			return
		}
		again, err := a.encode()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("decoded %x, re-encoded %x (%v)", b, again, err)
		}
	})
}
