package safetensors

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
)

// shardName is how writers name the files of a checkpoint of many: what number it is, and of how many.
var shardName = regexp.MustCompile(`^.*-\d{5}-of-(\d{5})` + regexp.QuoteMeta(extension) + `$`)

// checkLone refuses a file that by its name is one of many, where no index tells of the others: they may not be there yet.
func checkLone(name string) error {
	m := shardName.FindStringSubmatch(name)
	if m == nil {
		return nil
	}
	if n, err := strconv.Atoi(m[1]); err != nil || n == 1 {
		return err
	}
	return fmt.Errorf("%q is a part of a checkpoint, and there is no %s; name the file if it is all you mean (%s)", name, indexName, halfWritten)
}

// checkIndexIsLast refuses an index when a model.safetensors beside it, which it does not name, was written after it: the
// index is what an earlier save left, or the file is, and to guess would be to take old weights for new ones.
func (m *shardMap) checkIndexIsLast(d Disk, index string, written stamp) error {
	single, err := d.Stat(filepath.Join(filepath.Dir(index), singleName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, s := range m.shards {
		if s == singleName {
			return nil
		}
	}
	if single.ModTime().After(written.info.ModTime()) {
		return fmt.Errorf("%s does not name %s, which is newer; remove what an earlier save left, or name the one of the two that you mean", index, singleName)
	}
	return nil
}
