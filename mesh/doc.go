// Package mesh carries signed heads, catalogues and content-addressed chunks between the nodes of training runs.
//
// A node has one Mesh: its host, the peers it meets, and the exchange of blocks, which are content and belong to no run.
// It joins its runs before the Mesh runs; each Run has heads, publishers, a ledger and a gossip topic of its own. A node
// plays one role in all its runs. Nodes that share a run exchange blocks; those that share none stay connected in vain,
// and both say so.
//
// # Hearing
//
// A head names the newest version of a run; a catalogue lists the edges on offer. Both are canonical CBOR inside a
// libp2p signed envelope with a domain of its own, and those bytes never change on their way: the signature that a
// publisher made is the one that the last node checks, stores and passes on. Who passes it on does not matter.
//
// Whatever brings a record, gossip, a peer's answer, the ledger or the local trainer, hands it to one keeper. That
// checks size, signer, signature, run and clock, asks the book (pure state) how it ranks against what is known, writes
// what is newer to the ledger, and adopts it when it is durable. So a node that crashed never goes back to a version
// before the one it acted on, and a replayed head is old news to it.
//
// # Order
//
// The heads of a run are ordered by (epoch, number), whoever of its publishers signed them; catalogues by (epoch, seq).
// The newest of each counts, and nodes only move forward. A trainer opens a new epoch at every start, above all that it
// heard, so a restart, a hand-over to another publisher and a return to an older checkpoint are one and the same: a new
// epoch, whatever its numbers. Before anything is published a trainer announces its base, in an epoch below all others
// (see BaseVersion): that moves nobody who knows a version, also where the trainer has forgotten that there are any.
//
// Two publishers that know nothing of each other may choose one epoch. That is no fraud: of one version that of the
// higher peer ID (compared as bytes) counts, on every node and in whatever order the two come, and both are named among
// the problems. Two roots under one version by one signer mean that this publisher is broken or its key is stolen: the
// first is kept, both are stored as evidence, and nothing more of that epoch is adopted. A new epoch ends it. Of two
// catalogues by one signer under one number the first is kept and the second counted, no more: edges are checked when
// they are followed.
//
// Gossip is fast, and a hint only: gossipsub tells a late joiner nothing, drops under load, and forgets peers that came
// back from another address. So every node also asks: whoever it meets, whoever announced a head without its
// catalogue, and a random peer every few seconds. The protocol is /sparsecast/head/2:
//
//	asker:    {0: run}                                       at most 256 bytes, then closes its side; one a run
//	answerer: {0: head, 1: catalogue, 2: [peer records], 3: milliseconds since 1970}
//	                                                         at most 1 MiB, then closes; all may be missing
//
// and a gossip message on /sparsecast/heads/1/RUN is {0: head, 1: catalogue}, at most 16 KiB, the catalogue present
// when it has at most 8 KiB. Nothing on these wires states a length that is not already bounded by what was read.
//
// Epochs are held against clocks: one more than RunConfig.MaxAhead in the future is refused, or a publisher whose clock
// is wrong would lock the run out of every other. So that the publisher hears of it, answers tell the answerer's time:
// a node whose clock differs from most peers' names that among its problems, a trainer names the peers that refuse it,
// and one that is far ahead of most opens epochs by their clocks. That is a help, not a guard: peers may lie about their
// time. So it never keeps a trainer from publishing: an epoch is good if it is above the others, whatever the hour.
//
// # Meeting
//
// Peers are admitted by an allow-list of their IDs, which the handshake proves. Publishers are another list: being
// let in gives no right to publish. Signed peer records travel in answers, so that nodes which know only the bootstrap
// find each other; records of strangers are dropped.
//
// A host that vanishes leaves a connection that looks alive for half a minute. When the same peer connects anew, the
// older connection is closed, unless both were opened within two seconds, when the two may have dialled each other.
// Followers that gossip has lost all the same are disconnected to make them say hello again.
//
// A node says why it cannot follow: whom it does not reach and why, whom it turns away, who is of another run, whose
// records it refuses. Each is logged once and again ten minutes later, since peers decide how often it happens;
// counters count every time, and Problems lists what stands in the way now. What the others see of a refusal is a
// connection that ends before a word is said, so that is what they report.
//
// The data plane is TCP with TLS and yamux: QUIC costs 2.7 times the CPU a byte, and a pre-shared key 63 % of the
// throughput. QUIC is the fallback, and what the tests run on in virtual time.
//
// # Fetching
//
// Chunks are asked for by content ID over a few long-lived streams to each peer and checked before they are stored,
// used or offered; see message.go for the wire and picker.go for who is asked for what.
package mesh
