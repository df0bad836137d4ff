package mesh

import (
	"time"
)

// ExchangeConfig tunes an Exchange. The zero value of a field stands for its default.
type ExchangeConfig struct {
	// Streams are the data streams opened to one peer. A second one keeps a link busy while the first waits for
	// the disk; more only cost memory. 2.
	Streams int
	// Window is how many requests one peer is sent at first, MaxWindow how many at most. Small windows leave
	// requests free to go to faster peers, large ones fill links of a long delay. 4 and 16.
	Window, MaxWindow int
	// Pending bounds the requests waiting on one stream; further ones are answered "busy". 32.
	Pending int
	// Uploads bounds the blocks sent at the same time, to all peers together. Few finish sooner, so that receivers
	// can share early; too few starve links of a long delay. 8.
	Uploads int
	// MoreDelay and MoreBatch bound how long news of gained chunks is held back to travel together. 50 ms and 16.
	MoreDelay time.Duration
	MoreBatch int
	// PingEvery is the time between two pings; a peer that is silent for PingMisses of them is cut off. TCP alone
	// needs up to 40 s to notice a host that vanished. 3 s and 2.
	PingEvery  time.Duration
	PingMisses int
	// Takeover is the silence after which another node's claim on a chunk is taken over. Shorter recovers sooner,
	// but costs the source a second copy whenever a link is merely slow. 1 s.
	Takeover time.Duration
	// Stall is the silence after which what a peer was asked for is asked of others. 4 s.
	Stall time.Duration
	// Patience is how long a stream may make no progress at all before it is closed. 30 s.
	Patience time.Duration
	// BanFor is how long a peer that sent wrong bytes is refused. 5 min.
	BanFor time.Duration
	// Seed makes the random choices repeatable, for tests. 0 seeds them from the clock.
	Seed uint64
}

func (c ExchangeConfig) filled() ExchangeConfig {
	fill(&c.Streams, 2)
	fill(&c.Window, 4)
	fill(&c.MaxWindow, 16)
	fill(&c.Pending, 32)
	fill(&c.Uploads, 8)
	fill(&c.MoreDelay, 50*time.Millisecond)
	fill(&c.MoreBatch, 16)
	fill(&c.PingEvery, 3*time.Second)
	fill(&c.PingMisses, 2)
	fill(&c.Takeover, time.Second)
	fill(&c.Stall, 4*time.Second)
	fill(&c.Patience, 30*time.Second)
	fill(&c.BanFor, 5*time.Minute)
	fill(&c.Seed, uint64(time.Now().UnixNano()))
	return c
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
