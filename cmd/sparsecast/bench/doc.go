// Package bench measures the codec: bytes against the least that they could be and against how others write the same
// changes, and speed against copying the weights.
//
// # Bytes
//
// For every pair of states that follow each other an edge is coded as a node does it, applied again, and compared. What is
// counted:
//
//	stream    the code of what changed
//	manifest  what describes it to receivers: its root and, above 1024 chunks, its leaves
//	outboard  digests of all blocks of the new state, which are fetched for repair or after a mismatch only
//
// Stream and manifest are what an update takes on the wire. The schema is sent once a run, and heads are some hundred bytes.
//
// The bound is what a code would take that knew, for every tensor and every exponent of the OLD value, how many elements
// change and how often each step on the ordered grid of floats occurs, and were told none of this: with k of n elements
// changed, n·H(k/n) bits for where they are, and the empirical entropy of the signed steps. Nothing decodes from it without
// those counts, so that it is a little below what any code reaches, the more so the fewer changes there are.
//
// # Others
//
// The formats of peers are written anew here, from what is known of them, and read back. They are counted in their favour:
// without names, shapes and headers, which ours has, and where they go through zstd with the smaller of what the C program
// and the Go package make of it. Values of any dtype are kept bit for bit, which some of them do not do.
//
// # Speed
//
// Encoding is all that a trainer's node does but for disk and network: reading both states, comparing, coding, digests of all
// blocks of both, digests of all chunks. Applying is all that a rollout's does: checking the chunks, decoding, writing the new
// state beside the old one, digests of all its blocks, and comparing its root with the promised one. States lie in memory.
//
// Times mean little on shared machines, so that each is told as a share of how fast as many threads copy the same bytes at
// about the same moment: in every round the three follow each other, and the median of the rounds' ratios counts. How more
// threads scale is told by the fastest rounds; whether to believe it, by how many cores they had at most.
package bench
