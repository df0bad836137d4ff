package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/node/files"
)

// checkOut refuses an output that a rename would take away from somebody, before any work is done for it. A regular
// file is replaced, and so is a symlink to one or to nothing: what it points to is never written.
func checkOut(path string) error {
	if path == "-" {
		return errors.New("-o -: standard output is no place for it: name a file")
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil {
		return fmt.Errorf("-o %s: its directory: %w: make it first", path, err)
	} else if !info.IsDir() {
		return fmt.Errorf("-o %s: %s is no directory: name a file in one", path, filepath.Dir(path))
	}
	if target, err := os.Readlink(path); err == nil && strings.HasPrefix(target, "/proc/") {
		return fmt.Errorf("-o %s is a stream of this process, and would be replaced: name a file", path) // such as /dev/stdout
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("-o: %w: name another file", err)
	case info.IsDir():
		return fmt.Errorf("-o %s is a directory: name a file in it", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("-o %s is a %s, and would be replaced: name a file", path, files.Kind(info.Mode()))
	}
	return nil
}

// checkNotInput refuses an output that is one of the files read for it, under whatever name.
func checkNotInput(path string, inputs ...string) error {
	out, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("-o: %w: name another file", err)
	}
	for _, input := range inputs {
		if info, err := os.Stat(input); err == nil && os.SameFile(info, out) {
			return fmt.Errorf("-o %s is also an input (%s), and would be lost: name another file", path, input)
		}
	}
	return nil
}

// filesOf returns the files that make up a checkpoint: its weights and, if it lies in shards, their index.
func filesOf(c *delta.Checkpoint, path string) []string {
	return append(c.Files(), path, filepath.Join(path, "model.safetensors.index.json"))
}

// tempFile makes a file beside path, with the mode that the file at path shall have.
func tempFile(path string, mode fs.FileMode) (*os.File, error) {
	name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+rand.Text())
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
}

// discard closes a temporary file and removes its name, which is gone already if the file was renamed.
func discard(f *os.File) {
	f.Close()
	os.Remove(f.Name())
}
