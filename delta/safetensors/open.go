package safetensors

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

const (
	extension  = ".safetensors"
	indexName  = "model" + extension + indexSuffix
	singleName = "model" + extension
	// indexSuffix follows the name that the shards share.
	indexSuffix = ".index.json"
)

// Open opens a checkpoint: a file, or a directory as Hugging Face lays it out.
// In a directory model.safetensors.index.json decides; files that it does not name are ignored, unless that is a
// model.safetensors written after it. Without an index it is model.safetensors, or the only *.safetensors file there is,
// if that is not called one of several shards.
// The path of an index file with another name may be given too.
func Open(path string) (*Checkpoint, error) { return OpenOn(OS{}, path) }

// OpenOn is Open on another disk than this machine's.
func OpenOn(d Disk, path string) (*Checkpoint, error) {
	c, err := open(d, path)
	if err != nil {
		return nil, fmt.Errorf("open checkpoint: %w", err)
	}
	return c, nil
}

// open finds out what path names.
func open(d Disk, path string) (*Checkpoint, error) {
	info, err := d.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return openDirectory(d, path)
	case strings.HasSuffix(path, extension+indexSuffix):
		return openIndex(d, path, nil)
	default:
		return openSingle(d, path)
	}
}

// openDirectory picks the index or the single file of a directory.
func openDirectory(d Disk, dir string) (*Checkpoint, error) {
	for _, name := range []string{indexName, singleName} {
		path := filepath.Join(dir, name)
		_, err := d.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if name == indexName {
			return openIndex(d, path, (*shardMap).checkIndexIsLast)
		}
		return openSingle(d, path)
	}
	name, err := onlyWeights(d, dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return openSingle(d, filepath.Join(dir, name))
}

// onlyWeights returns the one weight file of a directory. Hidden files do not count.
func onlyWeights(d Disk, dir string) (string, error) {
	entries, err := d.ReadDir(dir)
	if err != nil {
		return "", err
	}
	found := ""
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") || !strings.HasSuffix(name, extension) {
			continue
		}
		if found != "" {
			return "", fmt.Errorf("several *%s files (%q, %q) and no %s; name one of them (%s)", extension, found, name, indexName, halfWritten)
		}
		found = name
	}
	if found == "" {
		return "", fmt.Errorf("no *%s file (%s)", extension, halfWritten)
	}
	return found, checkLone(found)
}

// openSingle opens a checkpoint of one file.
func openSingle(d Disk, path string) (*Checkpoint, error) {
	w, h, err := openWeights(d, path)
	if err != nil {
		return nil, err
	}
	c := new(Checkpoint)
	if err := c.add(w, h); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), c.Close())
	}
	return c, nil
}

// openIndex opens the shards beside an index. Doubt, if any, may refuse it.
func openIndex(d Disk, path string, doubt func(*shardMap, Disk, string, stamp) error) (*Checkpoint, error) {
	m, st, err := readIndex(d, path)
	if err == nil && doubt != nil {
		err = doubt(m, d, path, st)
	}
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{index: &st}
	if err := c.openShards(d, filepath.Dir(path), m); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.sort()
	if err := m.missing(c); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), c.Close())
	}
	return c, nil
}

// openShards opens every shard and holds it against the index.
func (c *Checkpoint) openShards(d Disk, dir string, m *shardMap) error {
	for _, name := range m.shards {
		path := filepath.Join(dir, name)
		w, h, err := openWeights(d, path)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: the index names this shard, but it is missing (%s): %w", path, halfWritten, err)
		}
		if err != nil {
			return err
		}
		err = c.add(w, h)
		if err == nil {
			err = m.check(name, h)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}
