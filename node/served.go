package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/sparsecast/sparsecast/node/api"
	"github.com/sparsecast/sparsecast/node/files"
)

// servedFile names the version that is served, so that a restart goes on with it.
const servedFile = "served.json"

func saveServed(dir *files.Dir, v api.VersionInfo) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := dir.WriteDurable(servedFile, b); err != nil {
		return fmt.Errorf("note the served version: %w", err)
	}
	return nil
}

// loadServed returns the version that was served last; ok is false when there was none.
func loadServed(dir *files.Dir) (v api.VersionInfo, ok bool, err error) {
	b, err := dir.ReadFile(servedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return v, false, nil
	}
	if err != nil {
		return v, false, fmt.Errorf("read the served version: %w", err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return v, false, fmt.Errorf("%s is damaged (%w): remove it, the node finds its version again from its slots", dir.Path(servedFile), err)
	}
	return v, true, nil
}
