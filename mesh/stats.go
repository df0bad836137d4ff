package mesh

import "sync/atomic"

// Stats counts what a node sent, received and refused since it started. Every field only grows.
type Stats struct {
	ChunkBytesSent     atomic.Uint64 // bytes of blocks sent to peers
	ChunkBytesReceived atomic.Uint64 // bytes of blocks received and found good
	ChunksSent         atomic.Uint64
	ChunksReceived     atomic.Uint64
	ChunksTampered     atomic.Uint64 // blocks that did not match their ID
	ChunksDuplicate    atomic.Uint64 // blocks received that were here already
	HeadsAccepted      atomic.Uint64 // heads adopted; the refusals below count heads and catalogues
	HeadsForged        atomic.Uint64 // bad signature, signed by no publisher of the run, or for another run
	HeadsStale         atomic.Uint64 // older than one already known
	HeadsConflicting   atomic.Uint64 // another content for a version already known, or of a frozen epoch
	HeadsEarly         atomic.Uint64 // epoch too far ahead of this node's clock
	MessagesMalformed  atomic.Uint64 // messages that could not be decoded or broke a bound
	PeersRefused       atomic.Uint64 // connections from peers that are not members
	PeersBanned        atomic.Uint64 // peers cut off for sending wrong bytes
}

// Snapshot returns the counters by their metric names, for status pages.
func (s *Stats) Snapshot() map[string]uint64 {
	return map[string]uint64{
		"chunk_bytes_sent":     s.ChunkBytesSent.Load(),
		"chunk_bytes_received": s.ChunkBytesReceived.Load(),
		"chunks_sent":          s.ChunksSent.Load(),
		"chunks_received":      s.ChunksReceived.Load(),
		"chunks_tampered":      s.ChunksTampered.Load(),
		"chunks_duplicate":     s.ChunksDuplicate.Load(),
		"heads_accepted":       s.HeadsAccepted.Load(),
		"heads_forged":         s.HeadsForged.Load(),
		"heads_stale":          s.HeadsStale.Load(),
		"heads_conflicting":    s.HeadsConflicting.Load(),
		"heads_early":          s.HeadsEarly.Load(),
		"messages_malformed":   s.MessagesMalformed.Load(),
		"peers_refused":        s.PeersRefused.Load(),
		"peers_banned":         s.PeersBanned.Load(),
	}
}
