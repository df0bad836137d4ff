package mesh

import (
	"bytes"
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/sparsecast/sparsecast/delta"
)

// rawQuestion writes q to n's head protocol as it is and returns the answer.
func rawQuestion(t *testing.T, from host.Host, n *node, q []byte) ([]byte, error) {
	t.Helper()
	st, err := from.NewStream(t.Context(), n.id(), headProtocol)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Reset()
	if _, err := st.Write(q); err != nil {
		return nil, err
	}
	if err := st.CloseWrite(); err != nil {
		return nil, err
	}
	return io.ReadAll(st)
}

// askByHalf connects to n, and begins a question that it does not end.
func askByHalf(t *testing.T, from host.Host, n *node) network.Stream {
	t.Helper()
	if err := from.Connect(t.Context(), n.info()); err != nil {
		t.Fatal(err)
	}
	st, err := from.NewStream(t.Context(), n.id(), headProtocol)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Write([]byte{0xa1}); err != nil {
		t.Fatal(err)
	}
	return st
}

func TestHostileQuestionsGetNoAnswer(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(2)
		nd := n.join(t, tm, 0, nil)
		publish(t, nd, tm, now(1))
		h, _ := n.host(t, tm.keys[1], tm.members, new(Stats))
		if err := h.Connect(t.Context(), nd.info()); err != nil {
			t.Fatal(err)
		}
		good, err := delta.MarshalRecord(question{testRun})
		if err != nil {
			t.Fatal(err)
		}
		other, err := delta.MarshalRecord(question{"another"})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			what  string
			bytes []byte
			bad   uint64
		}{
			{"cut short", good[:len(good)-1], 1},
			{"with more behind it", append(good[:len(good):len(good)], 0), 1},
			{"a string of 2^63 bytes", []byte{0xa1, 0x00, 0x7b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 1},
			{"nested without end", bytes.Repeat([]byte{0x81}, maxQuestion), 1},
			{"larger than a question", make([]byte, maxQuestion+1), 1},
			{"nothing", nil, 1},
			{"about another run", other, 0},
		} {
			before := nd.stats.MessagesMalformed.Load()
			if b, err := rawQuestion(t, h, nd, c.bytes); err == nil || len(b) > 0 {
				t.Errorf("%s: answered with %d bytes", c.what, len(b))
			}
			time.Sleep(time.Second) // within the rate
			if got := nd.stats.MessagesMalformed.Load() - before; got != c.bad {
				t.Errorf("%s: counted %d times", c.what, got)
			}
		}
		b, err := rawQuestion(t, h, nd, good)
		if err != nil {
			t.Fatal(err)
		}
		if a, err := decodeAnswer(b); err != nil || len(a.Head) == 0 || len(a.Catalogue) == 0 || len(a.Records) == 0 || time.Since(time.UnixMilli(int64(a.Clock))).Abs() > time.Second {
			t.Errorf("an honest question after all that: %d, %d, %d, %v", len(a.Head), len(a.Catalogue), len(a.Records), err)
		}
	})
}

// A question that never ends is cut off, so that it cannot hold a stream for ever.
func TestSlowQuestionsAreCutOff(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(2)
		nd := n.join(t, tm, 0, nil)
		h, _ := n.host(t, tm.keys[1], tm.members, new(Stats))
		st := askByHalf(t, h, nd)
		defer st.Reset()
		began := time.Now()
		if _, err := io.ReadAll(st); err == nil || time.Since(began) > 2*headPatience {
			t.Errorf("held for %s, then %v", time.Since(began), err)
		}
	})
}

func TestHostileAnswersDoNoHarm(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(3)
		trainer := n.join(t, tm, 0, nil)
		liar, _ := n.host(t, tm.keys[1], tm.members, new(Stats))
		var lie atomic.Pointer[[]byte]
		lie.Store(new([]byte))
		liar.SetStreamHandler(headProtocol, func(st network.Stream) {
			st.Write(*lie.Load())
			st.Close()
		})
		forgery, err := sealHead(testHead(now(9)), testKey(2000))
		if err != nil {
			t.Fatal(err)
		}
		forged, err := delta.MarshalRecord(answer{Head: forgery.Raw, Records: [][]byte{[]byte("no record"), nil}})
		if err != nil {
			t.Fatal(err)
		}
		crowd, err := delta.MarshalRecord(answer{Records: make([][]byte, maxRecords+1)})
		if err != nil {
			t.Fatal(err)
		}
		late, err := delta.MarshalRecord(answer{Clock: maxClock + 1})
		if err != nil {
			t.Fatal(err)
		}
		nd := n.join(t, tm, 2, nil, trainer.info())
		publish(t, trainer, tm, now(1))
		eventually(t, 2*time.Second, "the head is heard", func() bool { return nd.holds(now(1), 1) })
		if err := nd.host.Connect(t.Context(), *host.InfoFromHost(liar)); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			what    string
			bytes   []byte
			counter func() uint64
		}{
			{"noise", []byte("noise"), nd.stats.MessagesMalformed.Load},
			{"a forged head", forged, nd.stats.HeadsForged.Load},
			{"too many records", crowd, nd.stats.MessagesMalformed.Load},
			{"a time beyond all clocks", late, nd.stats.MessagesMalformed.Load},
			{"a byte string of 2^63 bytes", []byte{0xa1, 0x00, 0x5b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, nd.stats.MessagesMalformed.Load},
			{"more than an answer", make([]byte, maxAnswer+1), nd.stats.MessagesMalformed.Load},
		} {
			lie.Store(&c.bytes)
			before := c.counter()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err := nd.heads.ask(ctx, liar.ID(), nd.run)
			cancel()
			if c.counter() == before {
				t.Errorf("%s: not counted (%v)", c.what, err)
			}
		}
		if !nd.holds(now(1), 1) {
			t.Error("a lie was believed")
		}
		publish(t, trainer, tm, now(2))
		eventually(t, time.Second, "the mesh goes on", func() bool { return nd.holds(now(2), 1) })
	})
}

func FuzzDecodeAnswer(f *testing.F) {
	b, err := delta.MarshalRecord(answer{[]byte("head"), []byte("catalogue"), [][]byte{[]byte("record")}, 1_700_000_000_000})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := decodeAnswer(b)
		if err != nil {
			return
		}
		if again, err := delta.MarshalRecord(a); err != nil || !bytes.Equal(again, b) || len(a.Records) > maxRecords || a.Clock > maxClock {
			t.Fatalf("decoded %x, re-encoded %x (%v)", b, again, err)
		}
	})
}

// A question that is half asked must not keep a node from stopping.
func TestHalfAskedQuestionsDelayNoEnd(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(2)
		nd := n.join(t, tm, 0, nil)
		h, _ := n.host(t, tm.keys[1], tm.members, new(Stats))
		st := askByHalf(t, h, nd)
		defer st.Reset()
		time.Sleep(time.Second)
		began := time.Now()
		if nd.stop(); time.Since(began) > time.Second {
			t.Errorf("the end took %s", time.Since(began))
		}
	})
}

// Members that never answer, and ask to be asked all the time, must not keep the head from a late joiner.
func TestSilentMembersHoldUpNoHead(t *testing.T) {
	virtually(t, func(t *testing.T, n *virtualNet) {
		tm := newTeam(2 + 2*askers)
		trainer := n.join(t, tm, 0, nil)
		publish(t, trainer, tm, now(1))
		late := n.join(t, tm, 1, nil)
		for i := 2; i < len(tm.keys); i++ {
			h, _ := n.host(t, tm.keys[i], tm.members, new(Stats))
			h.SetStreamHandler(headProtocol, func(network.Stream) {})
			if err := h.Connect(t.Context(), late.info()); err != nil {
				t.Fatal(err)
			}
		}
		stop := during(t, func(ctx context.Context) {
			for ; ctx.Err() == nil; pause(ctx, 50*time.Millisecond) {
				for i := 2; i < len(tm.keys); i++ {
					late.heads.request(idOf(tm.keys[i]))
				}
			}
		})
		defer stop()
		time.Sleep(12 * time.Second)
		late.SetBootstrap([]peer.AddrInfo{trainer.info()})
		eventually(t, 2*headSilence, "the head is heard", func() bool { return late.holds(now(1), 1) })
	})
}
