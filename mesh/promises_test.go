package mesh

import (
	"context"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/sparsecast/sparsecast/delta"
)

// promisers claim everything, deliver nothing, and give no reason to be cut off.
var promisers = map[string]func(s network.Stream, id uint64, chunk int){
	"silent":    func(network.Stream, uint64, int) {},
	"absent":    func(s network.Stream, id uint64, _ int) { s.Write(encodeHeading(id, statusAbsent, 0)) },
	"busy":      func(s network.Stream, id uint64, _ int) { s.Write(encodeHeading(id, statusBusy, 0)) },
	"resetting": func(s network.Stream, _ uint64, _ int) { s.Reset() },
	"trickling": func(s network.Stream, id uint64, _ int) {
		_, err := s.Write(encodeHeading(id, statusOK, delta.MinChunk))
		for ; err == nil; _, err = s.Write([]byte{0}) {
			time.Sleep(500 * time.Millisecond)
		}
	},
	"too large": func(s network.Stream, id uint64, chunk int) {
		if chunk < 0 {
			s.Write(encodeHeading(id, statusOK, delta.MaxBlock))
		}
	},
}

// insist claims all of p again and again, as if it had just come in.
func insist(ctx context.Context, t *testing.T, raw *rawPeer, p payload) {
	s := raw.claim(p)
	have := aboutManifest(kindHave, p.id)
	have.Bits = newBitmap(len(p.m.Chunks))
	for i := range p.m.Chunks {
		bitmap(have.Bits).set(i)
	}
	for nonce := uint64(1); ctx.Err() == nil; nonce++ {
		pause(ctx, 200*time.Millisecond)
		s.Write(frames(t, control{Kind: kindPing, Nonce: nonce}, have))
	}
}

// What nobody has is known to be lacking, whatever a member promises: or it could keep everybody from going another way.
func TestEmptyPromisesDoNotHideWhatIsLacking(t *testing.T) {
	p := newPayload(t, 32, 1)
	for name, respond := range promisers {
		t.Run(name, func(t *testing.T) {
			withHostile(t, p, func(t *testing.T, source, fetcher *testNode, enemy host.Host) {
				lost, root := p.m.Chunks[5], delta.Sum([]byte("a block that is gone"))
				source.store.Delete(lost)
				raw := newRawPeer(t, enemy, fetcher.host, p, respond)
				defer during(t, func(ctx context.Context) { insist(ctx, t, raw, p) })()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				defer during(t, func(context.Context) { fetcher.Fetch(ctx, p.id, p.m, nil) })()
				defer during(t, func(context.Context) { fetcher.Block(ctx, root, delta.MaxLeaf) })()
				defer cancel() // before they are waited for
				eventually(t, 4*time.Minute, "the chunk is known to be lacking", func() bool {
					block, lacking := fetcher.Lacking(p.id)
					return lacking && block == lost
				})
				eventually(t, time.Minute, "the block is known to be lacking", func() bool {
					_, lacking := fetcher.Lacking(root)
					return lacking
				})
				for range 40 { // and stays so
					time.Sleep(500 * time.Millisecond)
					_, chunk := fetcher.Lacking(p.id)
					if _, block := fetcher.Lacking(root); !chunk || !block {
						t.Fatalf("lacking again: chunk %v, block %v", chunk, block)
					}
				}
				source.store.Put(lost, p.chunks[5])
				fetchAll(t, p, fetcher)
			})
		})
	}
}
