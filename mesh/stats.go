package mesh

import "sync/atomic"

// Stats counts what a node sent, received and refused since it started. Every field only grows; the table below says
// what each counts.
type Stats struct {
	ChunkBytesSent     atomic.Uint64
	ChunkBytesReceived atomic.Uint64
	ChunksSent         atomic.Uint64
	ChunksReceived     atomic.Uint64
	ChunksTampered     atomic.Uint64
	ChunksDuplicate    atomic.Uint64
	HeadsAccepted      atomic.Uint64
	HeadsForged        atomic.Uint64
	HeadsStale         atomic.Uint64
	HeadsConflicting   atomic.Uint64
	HeadsEarly         atomic.Uint64
	MessagesMalformed  atomic.Uint64
	PeersRefused       atomic.Uint64
	PeersBanned        atomic.Uint64
}

// counters names every field of Stats and says what it counts.
var counters = []struct {
	name, help string
	of         func(*Stats) *atomic.Uint64
}{
	{"chunk_bytes_sent", "Bytes of blocks sent to peers.", func(s *Stats) *atomic.Uint64 { return &s.ChunkBytesSent }},
	{"chunk_bytes_received", "Bytes of blocks received and found good.", func(s *Stats) *atomic.Uint64 { return &s.ChunkBytesReceived }},
	{"chunks_sent", "Blocks sent to peers.", func(s *Stats) *atomic.Uint64 { return &s.ChunksSent }},
	{"chunks_received", "Blocks received and found good.", func(s *Stats) *atomic.Uint64 { return &s.ChunksReceived }},
	{"chunks_tampered", "Blocks received that did not match their ID.", func(s *Stats) *atomic.Uint64 { return &s.ChunksTampered }},
	{"chunks_duplicate", "Blocks received that were here already.", func(s *Stats) *atomic.Uint64 { return &s.ChunksDuplicate }},
	{"heads_accepted", "Heads adopted.", func(s *Stats) *atomic.Uint64 { return &s.HeadsAccepted }},
	{"heads_forged", "Heads and catalogues with a bad signature, signed by no publisher, or for another run.", func(s *Stats) *atomic.Uint64 { return &s.HeadsForged }},
	{"heads_stale", "Heads and catalogues older than one already known.", func(s *Stats) *atomic.Uint64 { return &s.HeadsStale }},
	{"heads_conflicting", "Heads and catalogues that contradict a known one of the same version, or of a frozen epoch.", func(s *Stats) *atomic.Uint64 { return &s.HeadsConflicting }},
	{"heads_early", "Heads and catalogues with an epoch too far ahead of this node's clock.", func(s *Stats) *atomic.Uint64 { return &s.HeadsEarly }},
	{"messages_malformed", "Messages that could not be decoded or broke a bound.", func(s *Stats) *atomic.Uint64 { return &s.MessagesMalformed }},
	{"peers_refused", "Connections refused because the peer is not a member.", func(s *Stats) *atomic.Uint64 { return &s.PeersRefused }},
	{"peers_banned", "Peers cut off for sending wrong bytes.", func(s *Stats) *atomic.Uint64 { return &s.PeersBanned }},
}

// Snapshot returns the counters by their metric names, for status pages.
func (s *Stats) Snapshot() map[string]uint64 {
	values := make(map[string]uint64, len(counters))
	for _, c := range counters {
		values[c.name] = c.of(s).Load()
	}
	return values
}

// StatsHelp returns one line about each counter, by the names that Snapshot uses.
func StatsHelp() map[string]string {
	help := make(map[string]string, len(counters))
	for _, c := range counters {
		help[c.name] = c.help
	}
	return help
}
