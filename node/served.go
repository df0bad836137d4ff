package node

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/sparsecast/sparsecast/node/api"
	"github.com/sparsecast/sparsecast/node/files"
)

// servedFile names the version that is served, so that a restart goes on with it.
const servedFile = "served.json"

func saveServed(dir *files.Dir, v api.VersionInfo) error {
	b, err := marshalChecked(v)
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
	if err == nil {
		err = unmarshalChecked(b, &v)
	}
	if err != nil {
		return api.VersionInfo{}, false, fmt.Errorf("%s: %w", dir.Path(servedFile), err)
	}
	return v, true, nil
}
