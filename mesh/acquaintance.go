package mesh

import (
	"math/bits"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// acquaintance is what a picker remembers of a peer for the whole download, however often that connects anew: who
// comes back is no stranger that deserves patience, and what it tells again is no news. There are no more of them
// than members.
type acquaintance struct {
	joined  time.Time // for the first time
	claimed bool      // it has been fetching the manifest: claiming again is no news
	told    bitmap    // every chunk that it ever said it holds
	denied  bitmap    // every chunk that it said it holds and did not when it was asked
	news    time.Time // when it last told of a chunk that was new of it and missing here
	lapsed  bool      // it has been passed over as an owner, and has had no news since
	strikes int       // failures in a row
	down    time.Time // not a holder until then
}

// meet returns what is known of a peer, which is little at first.
func (p *picker) meet(now time.Time, id peer.ID) *acquaintance {
	a := p.met[id]
	if a == nil {
		a = &acquaintance{joined: now, told: newBitmap(len(p.at)), denied: newBitmap(len(p.at))}
		p.met[id] = a
	}
	return a
}

// heed notes the chunks that a peer says it holds. Of those that are here it may have heard from here, which is no
// sign of a way to the source.
func (p *picker) heed(now time.Time, a *acquaintance, said bitmap) {
	for k := range said {
		for fresh := said[k] &^ a.told[k]; fresh != 0; fresh &= fresh - 1 {
			p.heedOne(now, a, k*8+bits.TrailingZeros8(fresh))
		}
	}
}

func (p *picker) heedOne(now time.Time, a *acquaintance, i int) {
	if a.told.has(i) {
		return
	}
	a.told.set(i)
	if p.at[i] >= 0 {
		a.hopeful(now)
	}
}

// vouches returns a byte of the chunks that s holds by its own word, as far as that still counts. Whoever has let down
// again and again, and delivered nothing since, may say what it likes: else one that serves nothing could keep everybody
// waiting for what is gone.
func (s *source) vouches(k int) byte {
	if s.strikes >= hollow {
		return 0
	}
	return s.has[k] &^ s.denied[k]
}

// hopeful notes that a peer showed that it gets on.
func (a *acquaintance) hopeful(now time.Time) { a.news, a.lapsed = now, false }
