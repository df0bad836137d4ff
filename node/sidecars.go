package node

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/sparsecast/sparsecast/node/files"
)

// weightEndings are files beside the weights that are weights themselves, or lead to them.
var weightEndings = []string{
	".bin", ".bin.index.json", ".pt", ".pth", ".gguf", ".ckpt", ".distcp", ".h5", ".msgpack", ".npz", ".onnx", ".incomplete",
}

// copySidecars puts what an engine loads beside the weights (config, tokenizer, ...) from the base checkpoint into
// both slots, except beside states that have other tensors than the base. Files are copied, never linked: the base may be
// somebody's cache.
func (s *slots) copySidecars() error {
	base, err := s.read(s.base)
	if err != nil {
		return fmt.Errorf("base checkpoint: %w", err)
	}
	defer base.Close()
	for i, state := range base.names {
		names, err := sidecarsIn(s.dir.FS(), s.base.from[state])
		if err != nil {
			return fmt.Errorf("copy from the base checkpoint: %w", inState(state, err))
		}
		if len(names) > 0 {
			s.dressed[state] = base.parts[i].Schema().ID()
		}
	}
	for _, sl := range s.own {
		if s.only != "" && sl.name != s.only {
			continue
		}
		schema := base.Schema()
		if c, err := s.read(sl); err == nil { // also what is torn or damaged, and may become whole again
			schema = c.Schema()
			c.Close()
		}
		for state := range s.fits(schema) {
			err := s.layFrom(s.base.from[state], state, func(state, file string, b []byte) error {
				return s.place.WriteFile(path.Join("slots", sl.name, state, file), b)
			})
			if err != nil {
				return fmt.Errorf("copy from the base checkpoint: %w", err)
			}
		}
	}
	return nil
}

// eachSidecar calls use with every file beside the weights of a checkpoint that is a directory. Around one that is a
// file there may be anything.
func eachSidecar(fsys files.FS, dir string, use func(file string, content []byte) error) error {
	entries, err := sidecarsIn(fsys, dir)
	if err != nil {
		return err
	}
	for _, name := range entries {
		f, size, err := openSidecar(fsys, dir, name)
		if f == nil && err == nil {
			continue
		}
		var b []byte
		if err == nil {
			b, err = io.ReadAll(io.NewSectionReader(f, 0, size))
			f.Close()
		}
		if err == nil {
			err = use(name, b)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// sidecarsIn returns the names of what may be files beside weights.
func sidecarsIn(fsys files.FS, dir string) (names []string, err error) {
	info, err := fsys.Stat(dir)
	if err != nil || !info.IsDir() {
		return nil, err
	}
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dir, err)
	}
	for _, e := range entries {
		if isSidecar(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// openSidecar opens a file beside weights; nil when it is none for an engine to load.
func openSidecar(fsys files.FS, dir, name string) (files.File, int64, error) {
	f, info, err := files.OpenRegular(fsys, filepath.Join(dir, name)) // maybe a symlink, as in a hub cache
	if errors.Is(err, files.ErrNotRegular) || errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if info.Size() > files.MaxFile {
		f.Close()
		return nil, 0, nil
	}
	return f, info.Size(), nil
}

// isSidecar tells by the name whether a file beside weights is no weights itself.
func isSidecar(name string) bool {
	if strings.HasPrefix(name, ".") || strings.Contains(name, "\\") || strings.Contains(name, ".safetensors") { // half-written ones, too
		return false
	}
	for _, end := range weightEndings {
		if strings.HasSuffix(name, end) {
			return false
		}
	}
	return true
}
