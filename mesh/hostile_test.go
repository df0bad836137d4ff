package mesh

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/sparsecast/sparsecast/delta"
)

// rawPeer speaks the wire by hand, and as badly as a test wants.
type rawPeer struct {
	t    *testing.T
	host host.Host
	to   host.Host
}

// newRawPeer answers every control stream of an exchange as a rollout that holds all of p, and every request by
// calling respond with the stream, the request's ID and the index of the chunk, -1 for other blocks.
func newRawPeer(t *testing.T, h, to host.Host, p payload, respond func(s network.Stream, id uint64, chunk int)) *rawPeer {
	r := &rawPeer{t, h, to}
	h.SetStreamHandler(controlProtocol, func(s network.Stream) { io.Copy(io.Discard, s) })
	h.SetStreamHandler(chunkProtocol, func(s network.Stream) {
		b := bufio.NewReader(s)
		for {
			id, block, err := readRequest(b)
			if err != nil {
				return
			}
			chunk := -1
			for i, c := range p.m.Chunks {
				if c == block {
					chunk = i
				}
			}
			respond(s, id, chunk)
		}
	})
	return r
}

// open opens a stream and keeps it until the host closes.
func (r *rawPeer) open(p protocol.ID) network.Stream {
	s, err := r.host.NewStream(r.t.Context(), r.to.ID(), p)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func frames(t *testing.T, messages ...control) []byte {
	t.Helper()
	var all []byte
	for _, m := range messages {
		frame, err := encodeControl(m)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, frame...)
	}
	return all
}

var rolloutHello = control{Kind: kindHello, Role: "rollout", Cluster: "a", Runs: []string{testRun}}

// claim says hello and that all of p is held.
func (r *rawPeer) claim(p payload) network.Stream {
	have := aboutManifest(kindHave, p.id)
	all := newBitmap(len(p.m.Chunks))
	for i := range p.m.Chunks {
		all.set(i)
	}
	have.Bits = all
	s := r.open(controlProtocol)
	s.Write(frames(r.t, rolloutHello, have))
	return s
}

// withHostile runs f with an honest trainer that holds p, a rollout that is to fetch it, and the host of an enemy.
func withHostile(t *testing.T, p payload, f func(t *testing.T, source, fetcher *testNode, enemy host.Host)) {
	virtually(t, func(t *testing.T, net *virtualNet) {
		net.stop = append(net.stop, func() { time.Sleep(time.Second) }) // for the enemy's handlers to see the end
		hosts := connectedHosts(t, net, 3)
		source := startNode(t, hosts[0], Hello{RoleTrainer, "a", []string{testRun}}, ExchangeConfig{})
		fetcher := startNode(t, hosts[1], Hello{RoleRollout, "a", []string{testRun}}, ExchangeConfig{})
		net.stop = append(net.stop, source.halt, fetcher.halt)
		p.fill(t, source.store, 0, len(p.m.Chunks))
		f(t, source, fetcher, hosts[2])
	})
}

// TestLiarsAreCutOff has an enemy answer requests in every wrong way that no honest peer would. The download must
// finish from the source and the enemy be gone.
func TestLiarsAreCutOff(t *testing.T) {
	p := newPayload(t, 32, 1)
	block := func(id uint64, data []byte) []byte {
		return append(encodeHeading(id, statusOK, len(data)), data...)
	}
	for name, lie := range map[string]func(id uint64, chunk int) []byte{
		"flipped bit": func(id uint64, chunk int) []byte {
			bad := bytes.Clone(p.chunks[chunk])
			bad[100] ^= 1
			return block(id, bad)
		},
		"another chunk":  func(id uint64, chunk int) []byte { return block(id, p.chunks[(chunk+1)%31]) },
		"short block":    func(id uint64, chunk int) []byte { return block(id, p.chunks[chunk][:1000]) },
		"long block":     func(id uint64, chunk int) []byte { return encodeHeading(id, statusOK, delta.MaxBlock) },
		"huge length":    func(id uint64, chunk int) []byte { return binary.AppendUvarint(nil, 1<<62) },
		"unasked block":  func(id uint64, chunk int) []byte { return block(id+1000, p.chunks[chunk]) },
		"unknown status": func(id uint64, chunk int) []byte { return encodeHeading(id, 77, 0) },
		"same block twice": func(id uint64, chunk int) []byte {
			return append(block(id, p.chunks[chunk]), block(id, p.chunks[chunk])...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			withHostile(t, p, func(t *testing.T, source, fetcher *testNode, enemy host.Host) {
				raw := newRawPeer(t, enemy, fetcher.host, p, func(s network.Stream, id uint64, chunk int) {
					s.Write(lie(id, chunk))
				})
				go func() {
					time.Sleep(5 * time.Millisecond) // after the download began, so that it is heard
					raw.claim(p)
				}()
				fetchAll(t, p, fetcher)
				time.Sleep(time.Second)
				if got := fetcher.stats.PeersBanned.Load(); got != 1 {
					t.Errorf("%d peers banned, want the liar", got)
				}
				if n := len(fetcher.host.Network().ConnsToPeer(enemy.ID())); n > 0 {
					t.Error("the liar is still connected")
				}
				if fetcher.stats.ChunksTampered.Load()+fetcher.stats.MessagesMalformed.Load() == 0 {
					t.Error("the lie was not counted")
				}
				connect(t, enemy, fetcher.host)
				time.Sleep(time.Second)
				if n := len(fetcher.host.Network().ConnsToPeer(enemy.ID())); n > 0 {
					t.Error("the liar came back at once")
				}
			})
		})
	}
}

// TestUselessHoldersDoNotStopDownloads has an enemy that breaks no rule but never delivers.
func TestUselessHoldersDoNotStopDownloads(t *testing.T) {
	p := newPayload(t, 32, 1)
	for name, respond := range map[string]func(s network.Stream, id uint64, chunk int){
		"silent":    func(network.Stream, uint64, int) {},
		"absent":    func(s network.Stream, id uint64, _ int) { s.Write(encodeHeading(id, statusAbsent, 0)) },
		"busy":      func(s network.Stream, id uint64, _ int) { s.Write(encodeHeading(id, statusBusy, 0)) },
		"resetting": func(s network.Stream, _ uint64, _ int) { s.Reset() },
		"truncating": func(s network.Stream, id uint64, chunk int) {
			s.Write(encodeHeading(id, statusOK, len(p.chunks[chunk])))
			s.Write(p.chunks[chunk][:5000])
			s.CloseWrite()
		},
		"trickling": func(s network.Stream, id uint64, chunk int) {
			s.Write(encodeHeading(id, statusOK, len(p.chunks[chunk])))
			for i := range p.chunks[chunk] {
				time.Sleep(500 * time.Millisecond)
				if _, err := s.Write(p.chunks[chunk][i : i+1]); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			withHostile(t, p, func(t *testing.T, source, fetcher *testNode, enemy host.Host) {
				raw := newRawPeer(t, enemy, fetcher.host, p, respond)
				ctx, cancel := context.WithCancel(t.Context())
				var pinging sync.WaitGroup
				pinging.Go(func() {
					pause(ctx, 5*time.Millisecond)
					s := raw.claim(p)
					for nonce := uint64(1); ctx.Err() == nil; nonce++ { // so that it seems alive
						s.Write(frames(t, control{Kind: kindPing, Nonce: nonce}))
						pause(ctx, time.Second)
					}
				})
				began := time.Now()
				fetchAll(t, p, fetcher)
				t.Log(time.Since(began))
				cancel()
				pinging.Wait()
				if got := fetcher.stats.PeersBanned.Load(); got > 0 {
					t.Errorf("%d peers banned for being useless", got)
				}
			})
		})
	}
}

// TestMalformedStreamsAreCutOff sends what no honest peer sends over streams that the enemy opens.
func TestMalformedStreamsAreCutOff(t *testing.T) {
	p := newPayload(t, 32, 1)
	hello := frames(t, rolloutHello)
	have := aboutManifest(kindHave, p.id)
	have.Bits = make([]byte, 5)
	more := aboutManifest(kindMore, p.id)
	more.Indices = []uint32{32}
	var wants []control
	for i := range maxWants + 1 {
		wants = append(wants, aboutManifest(kindWant, delta.Sum([]byte{byte(i)})))
	}
	for name, c := range map[string]struct {
		protocol protocol.ID
		bytes    []byte
	}{
		"huge control length":     {controlProtocol, binary.AppendUvarint(nil, 1<<40)},
		"long control length":     {controlProtocol, append([]byte{0x83, 0x80, 0x00}, hello[1:]...)},
		"noise":                   {controlProtocol, append([]byte{40}, bytes.Repeat([]byte{0xff}, 40)...)},
		"no hello":                {controlProtocol, frames(t, control{Kind: kindPing, Nonce: 1})},
		"two hellos":              {controlProtocol, frames(t, rolloutHello, rolloutHello)},
		"hello of unknown role":   {controlProtocol, frames(t, control{Kind: kindHello, Role: "king", Runs: []string{testRun}})},
		"bitmap of wrong size":    {controlProtocol, frames(t, rolloutHello, have)},
		"index beyond the end":    {controlProtocol, frames(t, rolloutHello, more)},
		"too many wants":          {controlProtocol, frames(t, append([]control{rolloutHello}, wants...)...)},
		"request of wrong length": {chunkProtocol, append([]byte{39}, make([]byte, 39)...)},
		"huge request":            {chunkProtocol, binary.AppendUvarint(nil, 1<<50)},
	} {
		t.Run(name, func(t *testing.T) {
			withHostile(t, p, func(t *testing.T, source, fetcher *testNode, enemy host.Host) {
				raw := newRawPeer(t, enemy, fetcher.host, p, func(network.Stream, uint64, int) {})
				if c.protocol == chunkProtocol {
					raw.open(controlProtocol).Write(hello)
				}
				go func() {
					time.Sleep(5 * time.Millisecond)
					raw.open(c.protocol).Write(c.bytes)
				}()
				fetchAll(t, p, fetcher)
				time.Sleep(time.Second)
				if malformed, banned := fetcher.stats.MessagesMalformed.Load(), fetcher.stats.PeersBanned.Load(); malformed == 0 || banned != 1 {
					t.Errorf("%d malformed messages counted, %d peers banned", malformed, banned)
				}
			})
		})
	}
}

func TestBrokenOffFramesAreNoOffence(t *testing.T) {
	p := newPayload(t, 4, 1)
	withHostile(t, p, func(t *testing.T, source, fetcher *testNode, enemy host.Host) {
		raw := newRawPeer(t, enemy, fetcher.host, p, func(network.Stream, uint64, int) {})
		hello := frames(t, rolloutHello)
		for n := range hello {
			s := raw.open(controlProtocol)
			s.Write(hello[:n])
			s.CloseWrite()
		}
		raw.open(controlProtocol).Write(hello)
		s := raw.open(chunkProtocol)
		s.Write(encodeRequest(1, testDigest)[:20])
		s.CloseWrite()
		time.Sleep(time.Second)
		if got := fetcher.stats.MessagesMalformed.Load() + fetcher.stats.PeersBanned.Load(); got > 0 {
			t.Error("a stream that broke off was held against the peer")
		}
	})
}

// TestEndlessPingsSlowNobody floods the control stream as fast as the other side reads.
func TestEndlessPingsSlowNobody(t *testing.T) {
	p := newPayload(t, 64, 1)
	withHostile(t, p, func(t *testing.T, source, fetcher *testNode, enemy host.Host) {
		raw := newRawPeer(t, enemy, source.host, p, func(network.Stream, uint64, int) {})
		s := raw.open(controlProtocol)
		s.Write(frames(t, rolloutHello))
		var pings []control
		for i := range 1000 {
			pings = append(pings, control{Kind: kindPing, Nonce: uint64(i + 1)})
		}
		batch := frames(t, pings...)
		go func() {
			for {
				if _, err := s.Write(batch); err != nil {
					return
				}
			}
		}()
		time.Sleep(5 * time.Second)
		began := time.Now()
		fetchAll(t, p, fetcher)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("took %v", took)
		}
		source.mu.Lock()
		l := source.links[enemy.ID()]
		source.mu.Unlock()
		if l == nil {
			t.Fatal("the flood ended the link: pings break no rule")
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.outbox) > maxOutbox {
			t.Errorf("%d answers wait", len(l.outbox))
		}
	})
}

// TestSlowReadersBlockNobody has an enemy ask for everything many times over and read nothing.
func TestSlowReadersBlockNobody(t *testing.T) {
	p := newPayload(t, 256, 1)
	withHostile(t, p, func(t *testing.T, source, fetcher *testNode, enemy host.Host) {
		raw := newRawPeer(t, enemy, source.host, p, func(network.Stream, uint64, int) {})
		raw.open(controlProtocol).Write(frames(t, rolloutHello))
		for range 2 * maxServed { // more than may be open
			s := raw.open(chunkProtocol)
			go func() {
				for id := uint64(0); ; id++ {
					d, err := delta.Digest(p.m.Chunks[id%256])
					if err != nil {
						panic(err)
					}
					if _, err := s.Write(encodeRequest(id, d)); err != nil {
						return
					}
				}
			}()
		}
		time.Sleep(5 * time.Second)
		began := time.Now()
		fetchAll(t, p, fetcher)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("took %v beside a reader that does not read", took)
		}
		if got := len(source.uploads); got > 0 {
			t.Errorf("%d upload slots are held by a reader that does not read", got)
		}
	})
}

// TestRequestsGivenUpOnAreNotRepeated has the only holder answer after it was given up on: a busy source must not
// be made to send everything twice.
func TestRequestsGivenUpOnAreNotRepeated(t *testing.T) {
	p := newPayload(t, 32, 1)
	virtually(t, func(t *testing.T, net *virtualNet) {
		hosts := connectedHosts(t, net, 2)
		fetcher := startNode(t, hosts[0], Hello{RoleRollout, "a", []string{testRun}}, ExchangeConfig{})
		net.stop = append(net.stop, fetcher.halt)
		var mu sync.Mutex
		asked := make(map[int]int)
		raw := newRawPeer(t, hosts[1], fetcher.host, p, func(s network.Stream, id uint64, chunk int) {
			mu.Lock()
			asked[chunk]++
			total := len(asked)
			mu.Unlock()
			if total == 1 {
				time.Sleep(6 * time.Second) // longer than a stall, shorter than unanswered pings are put up with
			}
			s.Write(append(encodeHeading(id, statusOK, len(p.chunks[chunk])), p.chunks[chunk]...))
		})
		go func() {
			time.Sleep(5 * time.Millisecond)
			raw.claim(p)
		}()
		fetchAll(t, p, fetcher)
		mu.Lock()
		defer mu.Unlock()
		for chunk, n := range asked {
			if n > 1 {
				t.Errorf("chunk %d was asked for %d times", chunk, n)
			}
		}
	})
}
