package safetensors

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// maxIndex bounds the size of an index file in bytes.
	maxIndex = 100_000_000
	// maxShards bounds the files of a checkpoint, all of which are held open.
	maxShards = 4096
)

// shardMap is a parsed index: the shard of every tensor.
type shardMap struct {
	shardOf map[string]string
	shards  []string // sorted base names
}

// readIndex reads an index file.
func readIndex(d Disk, path string) (*shardMap, stamp, error) {
	f, st, err := openRegular(d, path)
	if err != nil {
		return nil, stamp{}, err
	}
	defer f.Close()
	if st.info.Size() > maxIndex {
		return nil, stamp{}, fmt.Errorf("%s: index of %d bytes, at most %d", path, st.info.Size(), maxIndex)
	}
	text, err := readWhole(f, st.info.Size())
	if err != nil {
		return nil, stamp{}, fmt.Errorf("%s: truncated while reading (%s): %w", path, halfWritten, err)
	}
	m, err := parseIndex(text)
	if err != nil {
		return nil, stamp{}, fmt.Errorf("%s: index %w (%s)", path, err, halfWritten)
	}
	return m, st, nil
}

// parseIndex reads the JSON text of an index. All members but the weight map are for others, and passed over.
func parseIndex(text []byte) (*shardMap, error) {
	w, err := newWalker(text)
	if err != nil {
		return nil, err
	}
	var m *shardMap
	err = w.object(func(key string) (err error) {
		if key != "weight_map" {
			return w.skip()
		}
		if m != nil {
			return errors.New("duplicate key \"weight_map\"")
		}
		m, err = parseShardMap(w)
		return err
	})
	if err == nil {
		err = w.end()
	}
	if err == nil && (m == nil || len(m.shards) == 0) {
		err = errors.New("has no weight_map or an empty one")
	}
	return m, err
}

// parseShardMap consumes the weight map.
func parseShardMap(w *walker) (*shardMap, error) {
	m := &shardMap{shardOf: map[string]string{}}
	names := map[string]string{} // one copy of every shard's name
	err := w.object(func(tensor string) error {
		if _, twice := m.shardOf[tensor]; twice {
			return fmt.Errorf("duplicate tensor %s", quote(tensor))
		}
		if err := checkCount(len(m.shardOf)); err != nil {
			return err
		}
		shard, err := w.text()
		if err != nil {
			return fmt.Errorf("tensor %s: %w", quote(tensor), err)
		}
		if !plain(shard) {
			return fmt.Errorf("tensor %s: shard %s is not a plain file name", quote(tensor), quote(shard))
		}
		if _, known := names[shard]; !known && len(names) == maxShards {
			return fmt.Errorf("more than %d shards", maxShards)
		} else if !known {
			names[shard] = shard
		}
		m.shardOf[tensor] = names[shard]
		return nil
	})
	m.shards = slices.Sorted(maps.Keys(names))
	return m, err
}

// plain tells whether a name stays inside its directory, on any system.
func plain(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= 255 && !strings.ContainsAny(name, "/\\\x00")
}

// check verifies that the index places the tensors of a shard there and nowhere else.
func (m *shardMap) check(shard string, h *header) error {
	for _, e := range h.entries {
		switch want, known := m.shardOf[e.Name]; {
		case !known:
			return fmt.Errorf("tensor %s is not in the index", quote(e.Name))
		case want != shard:
			return fmt.Errorf("tensor %s: the index places it in %s", quote(e.Name), quote(want))
		}
	}
	return nil
}

// missing returns a tensor that the index names and no shard holds; every found one is in the index.
func (m *shardMap) missing(c *Checkpoint) error {
	if len(c.tensors) == len(m.shardOf) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(m.shardOf)) {
		if _, found := c.Find(name); !found {
			return fmt.Errorf("tensor %s is not in its shard %s (%s)", quote(name), quote(m.shardOf[name]), halfWritten)
		}
	}
	return nil
}
