// Package delta knows what changed between two versions of a model's weights and how that is written down. It
// touches no network and knows nothing of versions or nodes.
//
// # States
//
// A [State] is all the weights under one [Schema]: names, dtypes and shapes. A schema names one or several states that
// move as one version (policy, draft model, adapter); the usual single one has no name. Tensors are numbered through
// all of them, in the order of state and name, and a [Bundle] makes one State of several. The elements of a tensor
// are seen as words, unsigned integers of 1, 2, 4 or 8 bytes, and compared as bits. What is smaller than a byte, and
// what has a dtype that we do not know, is bytes.
//
// A schema cuts every tensor into pieces, boxes that fill it without overlap (tiling.go), so that trainers which hold
// shards can publish them, and puts every piece into a group of pieces that are followed together, as a layer or an
// expert ([GroupByLayer]). A piece is coded as one row-major array. Without a word in the schema a tensor is one
// piece, and all are in one group without a name. Pieces stand in the order of the stream: by group, in the order of
// names, then tensor, then start.
//
// Every 256 Ki words of a piece make a block, hashed with xxh3-128; blocks are numbered in the order of the stream.
// Their [Digests] fold over pieces and groups into a [Root] (digest.go). Equal roots mean equal weights.
//
// # Edges
//
// An edge leads from one state to another (a delta), or from nothing to a state (an anchor). Its code is a stream for
// every group, cut into chunks that are named by their content; a [Manifest] names the states at both ends and the
// chunks. So a delta cannot be applied to a wrong state unnoticed: [ApplyEdge] compares the root of the result with
// the promise. An anchor may carry sidecars, small files that an engine needs beside the weights; their chunks follow
// those of the weights.
//
// The [Outboard] of an edge lies beside it in blocks of its own, for who does not take or trust the whole: digests
// tell damaged blocks, and follow one group against the root; lengths of frames lead to the code of a block. With
// them [Rebuild] makes single blocks anew, from another state and the few chunks that [ChunksOf] names.
//
// While an edge is applied the way back can be coded from the two tiles in hand (reverse.go). Where the edge is applied
// in place and that is cut short, [Undo] goes back by what there is of it. For that a frame must be wholly old or wholly
// new: a [Keep] sees each before it is written, so that those in the middle of which it ended can be written again.
//
// # Stream, format 1
//
// A stream holds the code of one group:
//
//	stream = "SPCAST" 0x00 0x03, profile u8, then every frame of the group that the schema implies
//	frame  = uvarint length, code; no code where nothing changed
//	code   = modes, head of every row of changes, head of every raw row, stored planes, bits
//
// A tile is a run of at most 256 Ki words of one piece, and a frame a run of at most 4096 tiles of one group, of at
// most 4 MiB; both follow from the schema, so that no position of a frame is ever sent. Frames are independent of each
// other. Numbers in heads are uvarints (LEB128 in the shortest form) unless a size is given; bits are numbered from the
// lowest.
//
// Modes say how each tile of the frame is written down, in runs: the length of the run times 4, and 0 for unchanged, 1
// for changes, 2 for raw. The tiles of mode 1 make a row of changes for every coding (width, place of the exponent, signed
// or not) among them, in the order in which each coding comes first: all words of those tiles, one after the other. Those
// of mode 2 make raw rows in the same way.
//
// # Changes
//
// The words of a row are sorted into 16 classes by the exponent of the OLD value less a floor, clamped, because the
// size of a weight decides above all whether a training step of about the learning rate moves it across a rounding
// boundary. Words without an exponent have one class. In each class the changed words are told by gaps, the number of
// words of the class in between, and their new values by signed steps on the ordered grid of bit patterns (grid.go).
//
//	head of a row = floor u8, classes with changes u16 (little-endian, a bit each); both only where there is an exponent
//	                then for each of these classes: number of changes, odds u8, model of steps
//
// The floor counts exponents of eight bits; for the eleven of an F64 it is shifted left by three.
//
// Gaps are close to geometric, so that one number describes them, the odds of a change: changed by unchanged words is
// 2^((odds-96)/4), odds below 128. With q the chance that a word is unchanged, low is the smallest number for which
// q^(2^low) is at most 4/5, and the symbol of a gap is the smaller of gap>>low and 31, which has the chance of a geometric
// distribution: weights of q^(s·2^low) less q^((s+1)·2^low), and of the rest for 31. All of this is computed in fractions
// of 2^-63 as in gaps.go, whose rounding is part of the format.
//
//	gap = symbol, low bits of the gap; where the symbol is 31 also 5 bits n, and n bits v: gap>>low is then 30 + 2^n + v
//
// A step of size m+1 has the symbol m where m is below 4. Else, with e the number of bits of m less one, it has the symbol
// 2e plus the second highest bit of m, and leaves the e-1 lowest bits of m open.
//
//	model of steps = 0 for all of size 1; else 1+lo u8, hi-lo u8, and if that is not 0, levels from lo to hi, 4 bits each
//	steps          = for each change symbol (unless lo is hi), open bits; then for each change 1 bit, set for down
//
// A level l above 0 is a weight of 2^(20+l/2), rounded down; 0 is never.
//
// # Raw words
//
// Words of floats are turned left by a bit, which brings the exponent to the top. Then their bytes are sorted into planes,
// all the highest ones first.
//
//	head of a raw row = for each plane: 0 for a stored one; else 1 and frequencies, which add up to 2048, from byte 0 on;
//	                    behind a frequency of 0 a u8 of how many more zeros follow
//
// Stored planes come as they are, behind all heads. Planes with frequencies are symbols.
//
// # Symbols and bits
//
// Symbols are coded by tANS with tables of 2048 states (tans.go). Weights become frequencies that add up to that as in
// frequencies.go. There are 4 states, which symbols take by turns over the whole frame. The bits are: the 4 states, 11 bits
// each; for every row of changes, for every class, the gaps and then the steps; then the symbols of every raw row, plane by
// plane. They fill bytes from the lowest bit on, and the first byte begins with zeros and a one so that they end with the
// last byte. In the end all states are 0 again. Where there are no symbols there are no bits.
//
// Encoders choose modes, floors, odds and models as they like, and name their way of choosing by the profile; that of 1 is the functions floor, oddsOf, stepsOf and planeOf,
// in integers only, so that the same two states give the same bytes on all machines. Whatever decodes encodes to the same
// bytes with the modes, floors, odds and models that it came with.
//
// # Kernels
//
// Words are looked at in spans of 4096, of which a [kernel] finds out all at once: which words changed, the class of each,
// and where in its class it stands. What depends on single changes is loops in Go over short lists. There are kernels for
// AVX-512, for AVX2, for NEON, and in Go for every processor; all give the same, and the environment variable
// SPARSECAST_KERNEL (avx512, avx2, neon, go) chooses another than the best. They are written by hand: a dozen loops that share one calling
// convention are shorter than a program that would print them, and avo knows no VBMI2.
//
// # Records, format 0.1
//
// Records are maps in canonical CBOR with small integers as keys. The key 0 holds the number of the format, so that
// builds which do not understand each other say so. What has its default is left out.
//
//	schema    0: 2
//	          1: tensors [name, dtype, shape, bytes], in the order of state and name
//	          2: states [name, number of tensors]; left out for one without a name
//	          3: names of the groups, in order; left out for one without a name
//	          4: cuts, uvarints: for every tensor of several pieces the tensors since the last such one, the number
//	             of pieces, and for each, in the order of starts, start and extent along every dimension
//	          5: members, uvarints: the group of each piece, in the order of tensor and start; left out for one group
//	manifest  0: 2
//	          1: schema, 2: base, 3: target, 32 bytes each; the base of an anchor is zero
//	          4: elements, 5: changed, 6: bytes of the target, 7: bytes of all streams, 8: size of a chunk
//	          9: digests of the chunks, at most 1024 of them; or, when there are more,
//	         10: digests of leaves, blocks of 4096 digests of chunks each, the last one shorter
//	         11: bytes of the stream of each group; left out for one group
//	         12: sidecars [name, bytes], in the order of names; before the name the state and a slash, if it has a name
//	         13: digests of the blocks of the outboard
//	leaf      digests of chunks, 32 bytes each
//	outboard  digest of each group, 32 bytes; digest of each block, 16; cut into blocks of 1 MiB
//	          bytes of code of each frame, u32 little-endian; cut into blocks of 1 MiB
//
// Every part of what is sent, the stream of each group and the sidecars together, is cut into chunks of one size from
// its begin, so that no chunk is of two groups. The size of an outboard follows from the schema, and so does where
// each group is in it. Its two parts share no block, because the first is the same for all edges to one state.
//
// Files: digest_record.go describes digests on a disk, container.go an edge in a file.
//
// # Promises
//
// Lengths are checked before memory is taken, and all of them are bounded by the local schema, never by the stream.
// Damage is an error, never a panic, and what came out is to be thrown away then. Memory stays below 256 MB
// whatever the size of the model and the number of cores: up to 32 work, a worker holds a tile of each state and the
// changes of a frame, and of frames with very many changes only a few are worked on at a time. Every record has one form: what decodes encodes to the same
// bytes. The files in testdata/golden pin them.
package delta
