// Package delta knows what changed between two versions of a model's weights and how that is written down. It
// touches no network and knows nothing of versions or nodes.
//
// # States
//
// A [State] is all the weights under one [Schema]: names, dtypes and shapes, in the order of the names. A schema is a
// content-addressed block. The elements of a tensor are seen as words, unsigned integers of 1, 2, 4 or 8 bytes, and
// compared as bits. What is smaller than a byte, and what has a dtype that we do not know, is bytes.
//
// Every 256 Ki words of a tensor make a block, hashed with xxh3-128; the digests of the blocks fold into a [Root]
// (digest.go). Equal roots mean equal weights.
//
// # Edges
//
// An edge leads from one state to another (a delta), or from nothing to a state (an anchor). Its code is a stream,
// cut into chunks that are named by their content; a [Manifest] names the states at both ends and the chunks. So a
// delta cannot be applied to a wrong state unnoticed: [ApplyEdge] compares the root of the result with the promise.
//
// # Stream, format 0.1
//
//	stream  = "SPCAST" 0x00 0x01, then every frame that the schema implies
//	frame   = uvarint length, then 41 sections: 1 head, 16 gaps, 16 steps, 8 planes
//	section = uvarint(length<<1 | squeezed), bytes; squeezed ones are a zstd frame with a content size
//	head    = 4 floors (one a word width), then for every tile in order
//	          0                            unchanged
//	          1, uvarint count × 16        sparse
//	          2                            raw
//
// A tile is a run of at most 256 Ki words of one tensor, and a frame a run of tiles of at most 4 MiB; both follow from
// the schema, so that no position is ever sent. In a sparse tile the words are sorted into 16 classes by the exponent
// of the OLD value less the floor, because the size of a weight decides above all whether a training step of about the
// learning rate moves it across a rounding boundary. In each class, the changed words are told by gaps, the number of
// words of that class in between, and the new values by signed steps on the ordered grid of bit patterns (grid.go).
// The planes hold the bytes of raw tiles, all first bytes, all second bytes and so on.
//
// Gaps and steps are varints under zstd's entropy coder. That is the simple coding: on recorded GRPO runs it takes
// 0.6 to 0.9 bytes a changed bf16 element, where the conditional entropy is about 0.65 to 0.73. Frames, tiles and
// sections are where a better entropy coder goes.
//
// # Promises
//
// Lengths are checked before memory is taken, and all of them are bounded by the local schema, never by the stream.
// Damage is an error, never a panic, and what came out is to be thrown away then. Memory is about 16 MiB a core, at
// most eight cores, whatever the size of the model.
package delta
