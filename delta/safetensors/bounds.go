package safetensors

import "fmt"

const (
	// maxTensors bounds the tensors of a checkpoint; the largest models have some hundred thousand.
	maxTensors = 1 << 20
	// maxMetadata bounds the entries of the metadata, whose cost in memory is many times that of their text.
	maxMetadata = 1 << 16
	// maxMetadataBytes bounds keys and values of the metadata in all.
	maxMetadataBytes = 16 << 20
)

// metadataCount adds up metadata, of one file or of all shards, while it is read or written.
type metadataCount struct{ entries, bytes int }

// add counts one more entry and fails when that is too much.
func (c *metadataCount) add(key, value string) error {
	c.entries++
	c.bytes += len(key) + len(value)
	if c.entries > maxMetadata {
		return fmt.Errorf("more than %d entries of metadata", maxMetadata)
	}
	if c.bytes > maxMetadataBytes {
		return fmt.Errorf("more than %d bytes of metadata", maxMetadataBytes)
	}
	return nil
}

// checkCount refuses one tensor more than n when there are enough.
func checkCount(n int) error {
	if n >= maxTensors {
		return fmt.Errorf("more than %d tensors", maxTensors)
	}
	return nil
}
