package safetensors

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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
// In a directory model.safetensors.index.json decides; files that it does not name are ignored.
// Without an index it is model.safetensors, or the only *.safetensors file there is.
// The path of an index file with another name may be given too.
func Open(path string) (*Checkpoint, error) {
	c, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("open checkpoint: %w", err)
	}
	return c, nil
}

// open finds out what path names.
func open(path string) (*Checkpoint, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return openDirectory(path)
	case strings.HasSuffix(path, extension+indexSuffix):
		return openIndex(path)
	default:
		return openSingle(path)
	}
}

// openDirectory picks the index or the single file of a directory.
func openDirectory(dir string) (*Checkpoint, error) {
	for _, name := range []string{indexName, singleName} {
		path := filepath.Join(dir, name)
		_, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if name == indexName {
			return openIndex(path)
		}
		return openSingle(path)
	}
	name, err := onlyWeights(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return openSingle(filepath.Join(dir, name))
}

// onlyWeights returns the one weight file of a directory. Hidden files do not count.
func onlyWeights(dir string) (string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return "", err
	}
	defer d.Close()
	found := ""
	for {
		names, err := d.Readdirnames(256)
		for _, name := range names {
			if strings.HasPrefix(name, ".") || !strings.HasSuffix(name, extension) {
				continue
			}
			if found != "" {
				return "", fmt.Errorf("several *%s files (%q, %q) and no %s; name one of them (%s)", extension, found, name, indexName, halfWritten)
			}
			found = name
		}
		if err == io.EOF && found == "" {
			return "", fmt.Errorf("no *%s file (%s)", extension, halfWritten)
		}
		if err == io.EOF {
			return found, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// openSingle opens a checkpoint of one file.
func openSingle(path string) (*Checkpoint, error) {
	w, h, err := openWeights(path)
	if err != nil {
		return nil, err
	}
	c := new(Checkpoint)
	if err := c.add(w, h); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), c.Close())
	}
	return c, nil
}

// openIndex opens the shards beside an index.
func openIndex(path string) (*Checkpoint, error) {
	m, st, err := readIndex(path)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{index: &st}
	if err := c.openShards(filepath.Dir(path), m); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.sort()
	if err := m.missing(c); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), c.Close())
	}
	return c, nil
}

// openShards opens every shard and holds it against the index.
func (c *Checkpoint) openShards(dir string, m *shardMap) error {
	for _, name := range m.shards {
		path := filepath.Join(dir, name)
		w, h, err := openWeights(path)
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
