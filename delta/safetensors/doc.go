// Package safetensors reads and writes checkpoints in the safetensors format of Hugging Face, in bounded memory
// and without trusting a byte of them.
//
// # The format
//
//	8 bytes   n, the length of the header, little-endian
//	n bytes   the header: one JSON object in UTF-8, beginning with '{', padded with white space
//	the rest  the byte buffer: the tensors, little-endian and row-major
//
// The header maps the name of each tensor to its description:
//
//	{"__metadata__": {"format": "pt"},
//	 "lm_head.weight": {"dtype": "BF16", "shape": [4, 8], "data_offsets": [0, 64]}}
//
// The offsets count from the start of the byte buffer; the second is one past the end. The tensors cover the buffer
// exactly: no holes, no overlaps, nothing after them. A shape of [] is a scalar, a 0 in it makes an empty tensor.
// "__metadata__" is optional and maps strings to strings.
//
// A checkpoint of many files comes with an index, model.safetensors.index.json, whose "weight_map" gives the file
// (the shard) of every tensor.
//
// # What is refused
//
// All that the reference implementation refuses (safetensors/src/tensor.rs): a header that is too long, cut off,
// not UTF-8 or not JSON; strings with half a surrogate pair; numbers that are negative, fractional or above 64 bits;
// shapes whose size overflows, ends inside a byte or differs from the offsets; holes, overlaps, a buffer that is
// longer or shorter than the tensors. Every error names the file and, where there is one, the tensor.
//
// We are stricter where leniency can make two readers see two things, or has no use:
//   - duplicate keys, which the format forbids and the reference lets pass in part;
//   - unknown keys in the description of a tensor;
//   - a header that begins with white space: the format forbids it, the reference reads it;
//   - more than 64 dimensions, which neither PyTorch nor NumPy can hold;
//   - more than 65536 entries or 16 MiB of metadata in a checkpoint, and more than 1048576 tensors: what these take
//     in memory is many times their text;
//   - shards and index that disagree: a tensor that is in a shard and not in the index, in another shard than
//     the index says, in the index and not in its shard; shard names that leave the directory.
//
// We are wider in one place: dtypes that we do not know are accepted as bytes, their size taken from the offsets,
// so that tomorrow's formats can travel. The reference reads no such file. A "__metadata__" of null counts as none.
//
// In a directory with an index, files that the index does not name are ignored, whatever they are called: they are
// leftovers of an earlier save. PyTorch tools disagree about a directory that holds both an index and a
// model.safetensors; here the index decides, and a directory where the latter is newer is refused.
//
// # What is promised
//
// Reading: nothing is mapped into memory, so a file that shrinks is an error and not a crash; only regular files are
// opened, so a named pipe cannot hold up the caller. A header takes at most 100 MB, and the tensors described by it
// a small multiple of that. Files of a Hugging Face cache, symlinks into its blobs, are read like any other.
// A checkpoint that somebody is still writing is noticed as far as that is possible: at once when its length is
// wrong or shards are missing, and afterwards by [Checkpoint.Changed].
//
// Writing: equal tensors, contents and metadata give equal files, and these are the bytes that the reference
// writes (for several metadata entries, up to the order in which it happens to hold them; for an empty metadata
// without tensors, where it writes invalid JSON, they are valid). The temporary file is always path+".partial": what
// a crash leaves is replaced by the next try, while a lock keeps a second writer from a live one. A checkpoint is
// built under another name, synced and then renamed; whoever has the old file open keeps reading the old bytes.
// A symlink at the path is replaced and what it points to is never written, which keeps caches intact.
//
// All of it happens on a [Disk]: this machine's unless OpenOn and CreateOn say otherwise.
package safetensors
